"""The pages of the documentation that say what the models and the words of state say; written by ``contract.schemas``."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from contract.codes import (
    FAILURE_SENTENCES,
    MAX_COUNTED_ATTEMPTS,
    PENDING_SENTENCES,
    WHY_DUE_SENTENCES,
    FailureCode,
)
from contract.events import FIXED_COLUMNS
from contract.rates import RATE_CAPS_HZ
from contract.store import (
    EventsAttributes,
    GroupAttributes,
    Level0Attributes,
    Provenance,
    RootAttributes,
    ViewAttributes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

__all__ = ["codes_page", "contract_page"]

_ATTRIBUTES: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "Root group": RootAttributes,
        "Provenance, the root attribute `nemar`": Provenance,
        "Channel group": GroupAttributes,
        "Level 0": Level0Attributes,
        "View level": ViewAttributes,
        "Events group": EventsAttributes,
    }
)

_COLUMN_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "store_path": "The store; joins to `stores[].zarr`.",
        "subject": "The recording's `sub` entity.",
        "session": "Its `ses` entity; null without one.",
        "task": "Its `task` entity; null without one.",
        "run": "Its `run` entity; null without one.",
        "onset_s": "Declared onset in seconds; null when the cell holds no number. The row is kept.",
        "duration_s": "Declared duration in seconds; null likewise.",
        "sample_index": "Level-0 sample, `floor(onset_s * rate + 0.5)` at the group's served rate, not clamped.",
        "group_name": "The channel group; joins to `stores[].groups[].name`.",
        "trial_type": "The column of that name; null for a blank or `n/a` cell.",
        "value": "The column of that name; null likewise.",
        "hed": "The column `HED` in any case; null likewise.",
    }
)

_OPENING = """\
# Contract reference

Everything that is published, field by field. This page and `contract/schemas/` are written by `make schemas` from the
models in `contract/`; change those, never this page. Documents are compact ASCII JSON, and closed: a field that is not
here is refused. Integers are integers, numbers are finite, times are UTC.

"Left out" means that the field is absent while it has no value, "null" that it is written as `null`.
"""

_EVENTS = """\
## events.parquet

One row per event and channel group of every served recording that has an events.tsv. Text columns are dictionaries with
int32 codes, compression is zstd, and a row group ends at a boundary between stores. Rows are ordered by `store_path`, by
onset with unknown onsets last and ties as in the file, and by `group_name`. Every other column of the events files
follows in alphabetical order under its own name, with `x_` before it only where that name is taken.
"""


_HELP: Mapping[FailureCode, str] = MappingProxyType(
    {
        FailureCode.NOT_CONTINUOUS: "Publish the continuous recording, or move this file to `derivatives/`.",
        FailureCode.CORRUPT_OR_TRUNCATED: "Upload the file again; compare its size with the original.",
        FailureCode.UNSUPPORTED_FORMAT: "Convert the recording to a format that BIDS names for its modality.",
        FailureCode.EMPTY_RECORDING: "Check the export that wrote the file.",
        FailureCode.FILE_READ_ERROR: "Read the detail; it names what the reader met.",
        FailureCode.RECORDING_TOO_LARGE: "Give the work to a machine with more memory, or raise `ZARRMILL_LARGEST_WORKER`.",
        FailureCode.CHANNEL_COUNT_MISMATCH: "Compare the rows of channels.tsv with the channels of the file.",
        FailureCode.MAXSHIELD_UNCALIBRATED: "Add the site's fine-calibration and cross-talk files to the dataset.",
        FailureCode.RETRY_EXHAUSTED: "Read the last error with `zarrmill why`, remove its cause, then convert with `--mode retry-pending`.",
        FailureCode.STORE_PATH_COLLISION: "Remove one of the two files, or rename it; the detail names the other one.",
        FailureCode.ANNEX_OBJECT_MISSING: "Upload the content of the file; a `git annex get` shows whether it is there.",
    }
)

_CODES = """\
# Codes, reasons and states

Written by `make schemas` from `contract/codes.py`. The words are stable: programs may rely on them, the sentences may be
improved. Every recording of a dataset is at any time in exactly one of three lists of its index: `stores`, `failures`,
`pending`.
"""

_FAILURES = """\
## Failure codes

A failure holds until the data or the converter changes. It is listed in `failures` with its sentence and, where one is
known, an operator's detail.

| Code | Sentence | What helps |
| --- | --- | --- |
"""

_PENDINGS = f"""\
## Pending reasons

Not now is never never: a pending recording has no store yet and will be tried again. A run costs it one attempt at most.
After counted attempts it waits 1 hour, 6 hours, 24 hours and 7 days; the {MAX_COUNTED_ATTEMPTS}th makes it `retry_exhausted`.
`--mode retry-pending` does not wait.

| Reason | Sentence | Counted |
| --- | --- | --- |
"""

_COUNTED = ("yes", "yes, once the conversion had begun", "no")

_WHYS = """\
## Why a conversion is due

`zarrmill plan` and `zarrmill why` say one of these. Only a changed source takes a served store out of the index at once;
for every other reason the store is served until its successor stands.

| Word | Sentence |
| --- | --- |
"""

_STATES = """\
## States of a recording

What is served and what is due are two facts, kept apart: a recording may be served while its next conversion is due.

| Due | Meaning |
| --- | --- |
| `none` | Nothing is to be done: the served store is true to its source. |
| `pending` | A conversion is to be done, with its reason, its counted attempts and the time before which it is not tried. |
| `converting` | An attempt holds the recording by a lease that it renews. |
| `failed` | There is a verdict with its code. |

## Outcomes of an attempt

| Outcome | Meaning |
| --- | --- |
| `converting` | It has not ended. |
| `done` | The store is served. |
| `failed` | It reached a verdict. |
| `pending` | It met a condition of the machine; usually counted. |
| `released` | It was given back, by a soft stop or because it did not fit just then; never counted. |
| `expired` | Its lease ran out, because its process or its machine died; counted only against a recording that died alone before. |
"""


def codes_page() -> str:
    """The text of docs/codes.md."""
    failures = [f"| `{code}` | {sentence} | {_HELP[code]} |" for code, sentence in FAILURE_SENTENCES.items()]
    pendings = [
        f"| `{reason}` | {sentence} | {counted} |"
        for (reason, sentence), counted in zip(PENDING_SENTENCES.items(), _COUNTED, strict=True)
    ]
    whys = [f"| `{why}` | {sentence} |" for why, sentence in WHY_DUE_SENTENCES.items()]
    tables = ((_FAILURES, failures), (_PENDINGS, pendings), (_WHYS, whys))
    return "\n".join([_CODES, *(f"{opening}{chr(10).join(rows)}\n" for opening, rows in tables), _STATES])


def contract_page(schemas: Mapping[str, dict[str, Any]]) -> str:
    """The text of docs/contract.md, from the JSON Schema of each document by its name."""
    parts = [_OPENING]
    for name, schema in schemas.items():
        title = schema["title"]
        parts.append(f"## {title}\n\n{schema['description']}\n\nSchema: `contract/schemas/{name}.json`.\n")
        if name == "zarr-index-v3-local":
            parts.append(_local_page(schema, schemas["zarr-index-v3"]))
            continue
        parts.append(_table(schema))
        for part, definition in schema.get("$defs", {}).items():
            if "properties" in definition and not (name == "zarr-ready-v1" and part == "FailureEntry"):
                parts.append(f"### {title}: {part}\n\n{definition['description']}\n\n{_table(definition)}")
    parts.append(_EVENTS + "\n" + _columns_table())
    parts.extend(_store_pages())
    return "\n".join(parts)


def _local_page(schema: dict[str, Any], published: dict[str, Any]) -> str:
    """Only what differs from the published index."""
    properties = schema["properties"].items()
    changed = {name: prop for name, prop in properties if prop != published["properties"][name]}
    differing = _table({"properties": changed, "required": schema["required"]})
    return f"All fields are those of index.json; these allow more:\n\n{differing}"


def _store_pages() -> Iterator[str]:
    yield (
        "## Attributes of a store\n\nWhat is added to a store is closed; what biosigIO writes is read tolerantly, and only "
        "the fields that something here relies on are listed.\n"
    )
    for title, model in _ATTRIBUTES.items():
        schema = model.model_json_schema()
        yield f"### {title}\n\n{schema['description']}\n\n{_table(schema, read=model is not Provenance)}"
    for name in ("ChannelAttributes", "ChannelsTsvUnits", "ChannelsTsvMatch", "ChannelsTsvCountMismatch"):
        for model in (GroupAttributes, RootAttributes):
            definition = model.model_json_schema().get("$defs", {}).get(name)
            if definition:
                yield f"### {name}\n\n{definition['description']}\n\n{_table(definition, read=True)}"
    caps = "\n".join(f"| {modality} | {cap:g} |" for modality, cap in RATE_CAPS_HZ.items())
    yield f"## Rate caps\n\nA recording below its cap keeps its rate. Other modalities have no cap.\n\n| Modality | Cap in Hz |\n| --- | --- |\n{caps}\n"


def _columns_table() -> str:
    rows = "\n".join(f"| `{name}` | {kind} | {_COLUMN_MEANINGS[name]} |" for name, kind in FIXED_COLUMNS.items())
    return f"| Column | Type | Meaning |\n| --- | --- | --- |\n{rows}\n"


def _table(schema: dict[str, Any], *, read: bool = False) -> str:
    """One row per field. ``read``: the attributes are another program's, so nothing of them is written as null."""
    required = schema.get("required", [])
    lines = ["| Field | Type | Without a value | Meaning |", "| --- | --- | --- | --- |"]
    for name, prop in schema["properties"].items():
        absence = "—" if name in required else "left out"
        if "default" in prop and not read:
            absence = f"`{json.dumps(prop['default'])}`"
        meaning = prop.get("description", "").replace("|", "\\|")
        lines.append(f"| `{name}` | {_type(prop)} | {absence} | {meaning} |")
    return "\n".join(lines) + "\n"


def _type(prop: dict[str, Any]) -> str:
    """A type in words, from a property of a JSON Schema."""
    if "const" in prop:
        return f"`{json.dumps(prop['const'])}`"
    if "enum" in prop:
        return ", ".join(f"`{json.dumps(value)}`" for value in prop["enum"])
    if "$ref" in prop:
        return str(prop["$ref"]).rpartition("/")[2]
    if "anyOf" in prop:
        return " or ".join(_type(branch) for branch in prop["anyOf"] if branch != {"type": "null"})
    if "prefixItems" in prop:
        return f"array of {len(prop['prefixItems'])} numbers"
    if prop.get("type") == "array":
        return f"array of {_type(prop['items'])}"
    if isinstance(prop.get("additionalProperties"), dict):
        return f"object of {_type(prop['additionalProperties'])}"
    limits = [f"≥ {prop['minimum']}"] if "minimum" in prop else []
    limits += [f"> {prop['exclusiveMinimum']}"] if "exclusiveMinimum" in prop else []
    return " ".join([str(prop.get("type", "any")), *limits])
