"""Windows and pictures for the tools: a recipe always, and at most a taste of the data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from contract.errors import Refused
from contract.recipe_making import Selection, group_of, make_recipe
from tasks.read.overview import Overview, render_overview
from tasks.read.store import read_consistently
from tasks.read.window import Window, read_window, select_in

if TYPE_CHECKING:
    from api.broker.answers import Archive
    from contract.window import WindowAsked

__all__ = ["TASTE_CHANNELS", "TASTE_CHANNEL_SECONDS", "TASTE_SECONDS", "TASTE_VALUES", "overview", "window"]

TASTE_SECONDS = 60
TASTE_CHANNELS = 64
TASTE_CHANNEL_SECONDS = 3840
TASTE_VALUES = 65_536
_DIGITS = 6


def window(archive: Archive, dataset_id: str, asked: WindowAsked, *, taste: bool) -> dict[str, Any]:
    """The recipe of a window and, with ``taste``, its values.

    Raises
    ------
    Refused
        The window is larger than a taste may be; the sentence names the bound.
    """
    index, entry, status = archive.ready_entry(dataset_id, asked.recording)
    group = group_of(entry, asked.group)
    selection = read_consistently(
        archive.place, dataset_id, entry.zarr, lambda reading: select_in(reading, entry.zarr, group.name, asked)
    )
    recipe = make_recipe(
        selection, head=index.head, entry=entry, group=group, index_etag=index.etag, verify_status=status
    ).model_dump(mode="json")
    answer: dict[str, Any] = {"provenance": recipe.pop("provenance"), "recipe": recipe, "data": None}
    if taste:
        _check_taste(selection, asked)
        read = read_window(archive.place, dataset_id, entry, dataclasses.replace(asked, group=group.name))
        answer["data"] = _tasted(read)
    return answer


def overview(archive: Archive, dataset_id: str, asked: WindowAsked, *, width: int) -> tuple[Overview, dict[str, Any]]:
    """A picture of a recording, and what is on it."""
    index, entry, status = archive.ready_entry(dataset_id, asked.recording)
    drawn = render_overview(archive.place, dataset_id, entry, asked, width=width)
    told = {
        "recording": entry.path,
        "level": drawn.level or "0",
        "start_s": drawn.start_s,
        "stop_s": drawn.stop_s,
        "channels": list(drawn.labels),
        "n_channels": drawn.n_channels,
        "truncated": len(drawn.labels) < drawn.n_channels and not asked.channels,
        "provenance": archive.provenance(index, status, entry, group_of(entry, asked.group), drawn.level),
    }
    return drawn, told


def _check_taste(selection: Selection, asked: WindowAsked) -> None:
    # by what was asked: columns of a view level may begin before and end behind it
    end_s = selection.attributes.n_samples / selection.attributes.rate
    seconds = round(min(end_s if asked.stop_s is None else asked.stop_s, end_s) - asked.start_s, 6)
    channels = len(selection.chosen)
    values = channels * (selection.columns[1] - selection.columns[0]) * (2 if selection.level else 1)
    for name, is_much, most in (
        ("seconds", seconds, TASTE_SECONDS),
        ("channels", channels, TASTE_CHANNELS),
        ("channel-seconds", seconds * channels, TASTE_CHANNEL_SECONDS),
        ("channel-samples", values, TASTE_VALUES),
    ):
        if is_much > most:
            raise Refused(
                f"taste: this window is {is_much:g} {name}, and a taste has at most {most}. Ask for less, or leave taste away and "
                "read it with the recipe."
            )


def _tasted(read: Window) -> dict[str, Any]:
    """Values as JSON, each with six significant digits; what int16 keeps is less."""

    def plain(values: Any) -> Any:
        return [plain(one) for one in values] if isinstance(values, list) else float(f"{values:.{_DIGITS}g}")

    selection = read.selection
    return {
        "axes": ["least, greatest", "channels", "columns"] if selection.level else ["channels", "samples"],
        "labels": [channel.label for channel in selection.chosen],
        "units": [channel.unit for channel in selection.chosen],
        "start_s": selection.seconds[0],
        "rate_hz": selection.rate_hz,
        "values": plain(read.values.tolist()),
    }
