"""The base of every published document: closed, frozen, strict, and with one rule for what is left out.

A field is one of four kinds, told by a marker in its type:

=================  ==================================================================================
plain              always written
``Absent[T]``      left out while it has no value; ``null`` in its place is refused
``Dropped[T]``     left out while it has no value; ``null`` in its place is read as no value
``Constant``       has a default, is always written, and a document without it is refused
=================  ==================================================================================

``T | None`` without a marker is written as ``null``. So the bytes of a document depend on its values only, never on
how it was built.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from contract.errors import Refused
from contract.layout import DATASET_ID_PATTERN, check_relative
from contract.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Absent",
    "Closed",
    "Commit",
    "Count",
    "DatasetId",
    "Dropped",
    "Hertz",
    "Listed",
    "NonEmpty",
    "Presence",
    "PublicText",
    "RelativePath",
    "Seconds",
    "Size",
    "StorePath",
    "UtcStamp",
]

T = TypeVar("T")


class Presence(Enum):
    """How a field behaves when it has no value; see the head of this module."""

    ABSENT = "absent"
    DROPPED = "dropped"
    CONSTANT = "constant"


Absent = Annotated[Union[T, None], Presence.ABSENT]  # noqa: UP007 a generic alias needs the spelled-out union
Dropped = Annotated[Union[T, None], Presence.DROPPED]  # noqa: UP007 a generic alias needs the spelled-out union
Listed = Annotated[tuple[T, ...], Strict(False)]
"""A JSON array. Built from a list or a tuple, kept as a tuple; its elements stay strict."""


def _relative(path: str) -> str:
    try:
        return check_relative(path)
    except Refused as error:
        raise ValueError(error.sentence) from error


def _without_negative_zero(value: float) -> float:
    return value + 0.0


Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
Hertz = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0), AfterValidator(_without_negative_zero)]
NonEmpty = Annotated[str, Field(min_length=1)]
DatasetId = Annotated[str, Field(pattern=DATASET_ID_PATTERN)]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
UtcStamp = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$")]
RelativePath = Annotated[str, Field(min_length=1), AfterValidator(_relative)]
StorePath = Annotated[str, Field(pattern=r"\.zarr$"), AfterValidator(_relative)]
PublicText = Annotated[Union[str, None], AfterValidator(redact)]  # noqa: UP007 spelled out beside its kin above
"""Text of an error that anybody may read: redacted when the model is made, so that nothing else can be stored in it."""


def presence(model: type[BaseModel], name: str) -> Presence | None:
    """The marker of one field, None for a plain one."""
    return next((mark for mark in model.model_fields[name].metadata if isinstance(mark, Presence)), None)


@cache
def _marked(model: type[BaseModel], mark: Presence) -> tuple[str, ...]:
    """Fields of a model with one marker, looked up once: an index of 25,000 stores has 150,000 objects."""
    return tuple(name for name in model.model_fields if presence(model, name) is mark)


def _tidy(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Make the generated JSON Schema say what ``Closed`` does."""
    schema.pop("title", None)
    required = []
    for name, field in model.model_fields.items():
        prop = schema["properties"][name]
        prop.pop("title", None)
        mark = presence(model, name)
        if mark is not None:
            prop.pop("default", None)
        if mark is Presence.ABSENT and "anyOf" in prop:
            (kept,) = [branch for branch in prop.pop("anyOf") if branch != {"type": "null"}]
            prop.update({**kept, **prop})
        if field.is_required() or mark is Presence.CONSTANT:
            required.append(name)
    if required:
        schema["required"] = required
    rules: Mapping[str, Any] = getattr(model, "SCHEMA_RULES", {})
    schema.update(rules)


class Closed(BaseModel):
    """A document, or an object inside one, that holds the fields of its contract and none besides.

    Integers are integers (``True`` and ``1.0`` are refused), floats are finite, and values cannot be changed afterwards.
    ``SCHEMA_RULES`` are JSON Schema keywords for rules that tie fields together.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
        json_schema_extra=_tidy,
    )

    SCHEMA_RULES: ClassVar[Mapping[str, Any]] = {}

    @model_validator(mode="after")
    def _nulls_and_constants(self, info: ValidationInfo) -> Closed:
        if info.mode != "json":
            return self
        given = self.model_fields_set
        for name in _marked(type(self), Presence.CONSTANT):
            if name not in given:
                raise ValueError(f"{name} is missing")
        for name in _marked(type(self), Presence.ABSENT):
            if name in given and getattr(self, name) is None:
                raise ValueError(f"{name} may be left out but not be null")
        return self

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for mark in (Presence.ABSENT, Presence.DROPPED):
            for name in _marked(type(self), mark):
                if written.get(name, False) is None:
                    del written[name]
        return written
