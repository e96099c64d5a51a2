"""JSON Schemas of the documents, generated from the models.

``python -m contract.schemas`` writes them and the generated pages of the documentation; tests keep what is checked in
equal to what is generated.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from contract.callback import ZarrReady
from contract.catalog import Catalog
from contract.index import Index, LocalIndex
from contract.manifest import Manifest
from contract.pages import codes_page, contract_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

__all__ = ["DOCUMENTS", "PAGE_FOLDER", "SCHEMA_FOLDER", "json_schema", "main", "pages", "schema_text"]

SCHEMA_FOLDER = Path(__file__).parent / "schemas"
PAGE_FOLDER = Path(__file__).parent.parent / "docs"

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


def pages() -> dict[str, str]:
    """The generated pages of the documentation, by file name."""
    return {"contract.md": contract_page({name: json_schema(name) for name in DOCUMENTS}), "codes.md": codes_page()}


def main() -> None:
    """Write the schemas and the pages."""
    SCHEMA_FOLDER.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        (SCHEMA_FOLDER / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
    for name, text in pages().items():
        (PAGE_FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
