"""JSON Schemas and the contract page of the documentation, generated from the models.

``python -m contract.schemas`` writes both; a test keeps what is checked in equal to what is generated.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from contract.callback import ZarrReady
from contract.catalog import Catalog
from contract.events import FIXED_COLUMNS
from contract.index import Index, LocalIndex
from contract.manifest import Manifest
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

__all__ = ["DOCUMENTS", "SCHEMA_FOLDER", "contract_page", "json_schema", "main", "schema_text"]

SCHEMA_FOLDER = Path(__file__).parent / "schemas"
PAGE = Path(__file__).parent.parent / "docs" / "contract.md"

DOCUMENTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "zarr-index-v3": Index,
        "zarr-index-v3-local": LocalIndex,
        "zarr-manifest-v1": Manifest,
        "zarr-catalog-v1": Catalog,
        "zarr-ready-v1": ZarrReady,
    }
)
"""Every document with a schema, by the schema's name."""

_ADDRESS = "https://api.nemar.org/schemas/"
_PUBLISHED = ("zarr-index-v3", "zarr-manifest-v1")

_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "zarr-index-v3": "index.json",
        "zarr-index-v3-local": "index.json of a folder",
        "zarr-manifest-v1": "manifest.json",
        "zarr-catalog-v1": "zarr-catalog.json",
        "zarr-ready-v1": "The zarr-ready callback",
    }
)

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


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one document.

    Raises
    ------
    KeyError
        No document has that schema name.
    """
    address = f"{_ADDRESS}{name}.json" if name in _PUBLISHED else f"{name}.json"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address,
        "title": _TITLES[name],
        **DOCUMENTS[name].model_json_schema(),
    }


def schema_text(name: str) -> str:
    """The schema as it is checked in."""
    return json.dumps(json_schema(name), indent=2, ensure_ascii=True) + "\n"


def contract_page() -> str:
    """The text of docs/contract.md."""
    parts = [_OPENING]
    for name, title in _TITLES.items():
        schema = json_schema(name)
        parts.append(f"## {title}\n\n{schema['description']}\n\nSchema: `contract/schemas/{name}.json`.\n")
        if name == "zarr-index-v3-local":
            parts.append(_local_page(schema))
            continue
        parts.append(_table(schema))
        for part, definition in schema.get("$defs", {}).items():
            if "properties" in definition and not (name == "zarr-ready-v1" and part == "FailureEntry"):
                parts.append(f"### {title}: {part}\n\n{definition['description']}\n\n{_table(definition)}")
    parts.append(_EVENTS + "\n" + _columns_table())
    parts.extend(_store_pages())
    return "\n".join(parts)


def main() -> None:
    """Write the schemas and the page."""
    SCHEMA_FOLDER.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (SCHEMA_FOLDER / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
    PAGE.write_text(contract_page(), encoding="utf-8")


def _local_page(schema: dict[str, Any]) -> str:
    """Only what differs from the published index."""
    published = json_schema("zarr-index-v3")["properties"]
    changed = {name: prop for name, prop in schema["properties"].items() if prop != published[name]}
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
    for name in ("ChannelAttributes", "ChannelsTsvUnits"):
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


if __name__ == "__main__":
    main()
