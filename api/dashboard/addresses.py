"""The addresses of the pages of the dashboard. Whatever a path holds, its address leads to it and to nothing else."""

from __future__ import annotations

from urllib.parse import quote

__all__ = [
    "HOME",
    "dataset_action",
    "dataset_events",
    "dataset_page",
    "gateway_store",
    "is_own_page",
    "plots_page",
    "recording_page",
    "recordings_csv",
    "run_page",
    "viewer_page",
]

HOME = "/dashboard"


def dataset_page(dataset_id: str) -> str:
    """The page of a dataset."""
    return f"{HOME}/datasets/{quote(dataset_id, safe='')}"


def dataset_action(dataset_id: str, verb: str) -> str:
    """Where the form of an action on a dataset is sent."""
    return f"{dataset_page(dataset_id)}/actions/{quote(verb, safe='')}"


def dataset_events(dataset_id: str) -> str:
    """What moves of a dataset, as server-sent events."""
    return f"{dataset_page(dataset_id)}/events"


def recordings_csv(dataset_id: str) -> str:
    """The table of a dataset's recordings as CSV."""
    return f"{dataset_page(dataset_id)}/recordings.csv"


def recording_page(dataset_id: str, path: str) -> str:
    """The page of a recording by its path in the dataset."""
    return f"{dataset_page(dataset_id)}/recordings/{quote(path)}"


def run_page(dataset_id: str, number: int) -> str:
    """The page of a run of a dataset by its number."""
    return f"{dataset_page(dataset_id)}/runs/{number}"


def viewer_page(dataset_id: str, zarr: str) -> str:
    """The viewer on a store by its path in the dataset."""
    return f"{dataset_page(dataset_id)}/view/{quote(zarr)}"


def plots_page() -> str:
    """The plots over everything."""
    return f"{HOME}/plots"


def gateway_store(dataset_id: str, zarr: str) -> str:
    """Where this server itself answers for the objects of a store."""
    return f"/{quote(dataset_id, safe='')}/zarr/{quote(zarr)}"


def is_own_page(address: str) -> bool:
    """Whether an address that a browser brought along leads to a page of the dashboard and nowhere else."""
    inside = address == HOME or address.startswith((f"{HOME}/", f"{HOME}?"))
    return inside and address.isprintable() and "\\" not in address
