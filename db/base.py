"""What every table shares: column types, constraint names."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    LargeBinary,
    MetaData,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

__all__ = ["Base", "Count", "DatasetKey", "Flag", "Json", "Key", "Moment", "Path", "RunKey"]

Key = Annotated[int, mapped_column(BigInteger, Identity(always=True), primary_key=True)]
Path = Annotated[str, mapped_column(Text(collation="C"))]
"""Ordered as Python orders strings: UTF-8 bytes and code points sort alike."""
Count = Annotated[int, mapped_column(BigInteger, server_default=text("0"))]
Flag = Annotated[bool, mapped_column(Boolean, server_default=text("false"))]
Moment = Annotated[datetime, mapped_column(DateTime(timezone=True), server_default=text("zarrmill_now()"))]
DatasetKey = Annotated[int, mapped_column(ForeignKey("datasets.pk", ondelete="CASCADE"))]
RunKey = Annotated[UUID, mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))]
Json = Annotated[dict[str, Any], mapped_column(JSONB, server_default=text("'{}'"))]


class Base(DeclarativeBase):
    """Types and constraint names that every table shares."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        int: BigInteger,
        float: Double,
        bytes: LargeBinary,
        datetime: DateTime(timezone=True),
        UUID: Uuid,
        list[str]: ARRAY(Text),
    }
