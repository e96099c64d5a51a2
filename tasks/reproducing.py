"""The command with which somebody converts one recording alone, on a machine that has its source."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["reproduction"]

_OF_DATASET = "dataset_description.json"


def reproduction(*, source: str, annex: str | None, dataset_id: str, path: str, inputs: Iterable[str]) -> str:
    """A line for a shell: copies what applies to the recording into a fresh folder, converts that, and says why it ended as it did.

    Every name is quoted, so that none is anything but a name. State, target and copy are fresh folders; nothing that is served is touched.
    """
    files = sorted({*inputs, _OF_DATASET})
    here = 'there=$(mktemp -d) && export ZARRMILL_HOME="$there/home" && mkdir -p "$there/data" "$there/home"'
    if source.startswith("s3://"):
        got = " && ".join(f'aws s3 cp {_s3(source, name)} "$there/data/"{shlex.quote(name)}' for name in files)
    else:
        names = " ".join(shlex.quote(f"./{name}") for name in files)
        got = f'(cd {shlex.quote(source)} && cp -L --parents -- {names} "$there/data")'
    more = f" --annex {shlex.quote(annex)}" if annex else ""
    convert = (
        f'zarrmill convert "$there/data" --to "$there/served" --dataset-id {shlex.quote(dataset_id)} --workers 1{more}'
    )
    told = f'zarrmill why {shlex.quote(dataset_id)} {_argument(path)} --to "$there/served" --verbose'
    return f"({here} && {got} && {convert}; {told})"


def _s3(source: str, name: str) -> str:
    return shlex.quote(f"{source.rstrip('/')}/{name}")


def _argument(path: str) -> str:
    # no path of a dataset may be taken for an option
    return shlex.quote(path if not path.startswith("-") else f"./{path}")
