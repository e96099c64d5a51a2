"""Documents to bytes and back: the one way everything published is written.

Compact JSON, ASCII only, fields in the order of their models. Equal documents have equal bytes, on every machine.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from contract.errors import Refused
from contract.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contract.index import LocalIndexHead

__all__ = ["CONTENT_TYPE", "compact", "dump", "parse", "read_attributes", "write_index"]

CONTENT_TYPE = "application/json"

M = TypeVar("M", bound=BaseModel)


def compact(value: Any) -> bytes:
    """``value`` as compact ASCII JSON. NaN and infinities raise ValueError."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def dump(document: BaseModel) -> bytes:
    """The bytes of a document, or of one entry of it."""
    return compact(document.model_dump(mode="json"))


def parse(model: type[M], data: bytes | str) -> M:
    """The document in ``data``, fully checked.

    Raises
    ------
    Refused
        ``data`` is not JSON or breaks the contract; the sentence names the first field that does.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise _refused(model, error) from error


def read_attributes(model: type[M], attributes: Mapping[str, Any]) -> M:
    """Attributes of a group or an array as one of the models of ``contract.store``.

    Raises
    ------
    Refused
        A field that we rely on is missing or wrong; the sentence names it.
    """
    try:
        return model.model_validate(dict(attributes))
    except ValidationError as error:
        raise _refused(model, error) from error


def write_index(
    head: LocalIndexHead,
    stores: Iterable[bytes],
    failures: Iterable[bytes],
    pending: Iterable[bytes],
) -> bytes:
    """The bytes of an index whose entries are already dumped; the same as ``dump`` of the whole index.

    A dataset of 25,000 stores is written from the entries that its conversions left, without making 25,000 models. The
    entries must come sorted; ``parse`` of the result checks all that is not checked here.

    Raises
    ------
    ValueError
        A list holds another number of entries than the head says.
    """
    fields = head.model_dump(mode="json")
    tail = {name: fields.pop(name) for name in ("events_parquet", "events_row_count") if name in fields}
    pieces = [compact(fields)[:-1]]
    counted = (("stores", stores, head.store_count), ("failures", failures, head.failure_count))
    for name, entries, count in chain(counted, (("pending", pending, head.pending_count),)):
        listed = list(entries)
        if len(listed) != count:
            raise ValueError(f"the head counts {count} in {name}, but there are {len(listed)}")
        pieces.append(b',"' + name.encode("ascii") + b'":[' + b",".join(listed) + b"]")
    if tail:
        pieces.append(b"," + compact(tail)[1:-1])
    pieces.append(b"}")
    return b"".join(pieces)


def _refused(model: type[BaseModel], error: ValidationError) -> Refused:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the document"
    sentence = f"This is no valid {model.__name__}: {where}: {first['msg']}."
    return Refused(sentence, detail=redact(f"{error.error_count()} fields are wrong"))
