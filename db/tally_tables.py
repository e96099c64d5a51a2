"""The tables of counts: how many of what each dataset has now, what each day changed, what is not folded yet; and when things were last done."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Date, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, DatasetKey, Key, Moment

__all__ = ["Mark", "Tally", "TallyChange", "TallyDay"]


class Tally(Base):
    """How many of something a dataset has, but for what is not folded yet."""

    __tablename__ = "tallies"
    dataset_pk: Mapped[DatasetKey] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[int]


class TallyDay(Base):
    """By how much a day, in UTC, changed that number."""

    __tablename__ = "tally_days"
    __table_args__ = (Index(None, "name", "day"),)
    dataset_pk: Mapped[DatasetKey] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    amount: Mapped[int]


class TallyChange(Base):
    """What one statement changed, until it is folded. Triggers write it; the dataset may be gone by then."""

    __tablename__ = "tally_changes"
    pk: Mapped[Key]
    dataset_pk: Mapped[int]
    name: Mapped[str]
    amount: Mapped[int]
    changed_at: Mapped[Moment]


class Mark(Base):
    """When something that is done by the clock was last done."""

    __tablename__ = "marks"
    name: Mapped[str] = mapped_column(primary_key=True)
    marked_at: Mapped[Moment]
