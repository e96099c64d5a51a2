"""The ledger of machines: commands on one machine share its memory, scratch and slots by reserving parts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from sqlalchemy import text

from contract.errors import LostLease
from db.leases import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

__all__ = [
    "MANY_SLOTS",
    "RESERVATION_S",
    "Part",
    "declare_host",
    "free",
    "reap",
    "release",
    "renew",
    "reserve",
    "resize",
]

MANY_SLOTS = 1 << 20
"""What a host has of slots: they are a worker's own affair; only memory and scratch are shared by a host."""
RESERVATION_S = 60
"""How long a part stays reserved by a command that is not heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a machine."""

    memory_bytes: int
    scratch_bytes: int
    slots: int

    def values(self) -> dict[str, int]:
        """Its columns."""
        return {"memory": self.memory_bytes, "scratch": self.scratch_bytes, "slots": self.slots}


def declare_host(c: Connection, *, key: str, name: str, whole: Part) -> None:
    """Say what a machine (boot id and cgroup) has for conversions in all; a changed size moves what is free with it.

    A size smaller than what is reserved now is taken up as far as that allows.
    """
    grown = ", ".join(
        f"free_{column} = LEAST(GREATEST(hosts.free_{column} + excluded.{column} - hosts.{column}, 0), excluded.{column}), "
        f"{column} = GREATEST(excluded.{column}, hosts.{column} - hosts.free_{column})"
        for column in ("memory_bytes", "scratch_bytes", "slots")
    )
    c.execute(
        text(f"""
            INSERT INTO hosts (key, name, memory_bytes, scratch_bytes, slots, free_memory_bytes, free_scratch_bytes, free_slots)
            VALUES (:key, :name, :memory, :scratch, :slots, :memory, :scratch, :slots)
            ON CONFLICT (key) DO UPDATE SET name = excluded.name, seen_at = zarrmill_now(), {grown}
        """),
        {"key": key, "name": name, **whole.values()},
    )


def reserve(
    c: Connection, *, host: str, part: Part, owner: Owner, run_id: UUID | None = None, worker: str | None = None
) -> UUID | None:
    """The reservation of a part of a machine, or None when that much is not free. One statement.

    ``run_id`` and ``worker`` say which run uses it on which worker, for the shares of ``db.contenders``.
    """
    reservation = uuid4()
    made = c.execute(
        text("""
            WITH taken AS (
                UPDATE hosts
                SET free_memory_bytes = free_memory_bytes - :memory, free_scratch_bytes = free_scratch_bytes - :scratch,
                    free_slots = free_slots - :slots, seen_at = zarrmill_now()
                WHERE key = :host AND free_memory_bytes >= :memory AND free_scratch_bytes >= :scratch AND free_slots >= :slots
                RETURNING key
            )
            INSERT INTO reservations (id, host_key, memory_bytes, scratch_bytes, slots, owner_host, owner_pid, lock_path,
                                      expires_at, run_id, worker)
            SELECT CAST(:id AS uuid), key, CAST(:memory AS bigint), CAST(:scratch AS bigint), CAST(:slots AS bigint), :owner_host,
                   CAST(:owner_pid AS bigint), :lock_path, zarrmill_now() + make_interval(secs => :lease_s), CAST(:run AS uuid), :worker
            FROM taken
        """),
        {
            "id": reservation,
            "host": host,
            **part.values(),
            "owner_host": owner.host,
            "owner_pid": owner.pid,
            "lock_path": owner.lock_path,
            "lease_s": RESERVATION_S,
            "run": run_id,
            "worker": worker,
        },
    )
    return reservation if made.rowcount == 1 else None


def resize(c: Connection, *, reservation: UUID, part: Part) -> bool:
    """Whether the reservation now is of ``part``: what is less is given back, what is more must be free. One statement."""
    made = c.execute(
        text("""
            WITH old AS (
                SELECT host_key, memory_bytes AS memory, scratch_bytes AS scratch, slots FROM reservations WHERE id = :id FOR UPDATE
            ), taken AS (
                UPDATE hosts h
                SET free_memory_bytes = free_memory_bytes + old.memory - :memory,
                    free_scratch_bytes = free_scratch_bytes + old.scratch - :scratch,
                    free_slots = free_slots + old.slots - :slots, seen_at = zarrmill_now()
                FROM old
                WHERE h.key = old.host_key AND free_memory_bytes + old.memory >= :memory
                  AND free_scratch_bytes + old.scratch >= :scratch AND free_slots + old.slots >= :slots
                RETURNING h.key
            )
            UPDATE reservations SET memory_bytes = :memory, scratch_bytes = :scratch, slots = :slots
            FROM taken WHERE id = :id
        """),
        {"id": reservation, **part.values()},
    )
    return made.rowcount == 1


def renew(c: Connection, *, reservations: Collection[UUID]) -> None:
    """Keep reservations for another ``RESERVATION_S`` seconds.

    Raises
    ------
    LostLease
        One of them was given back, or reaped.
    """
    kept = c.execute(
        text("""
            UPDATE reservations SET expires_at = zarrmill_now() + make_interval(secs => :lease_s)
            WHERE id = ANY(CAST(:ids AS uuid[]))
        """),
        {"ids": list(reservations), "lease_s": RESERVATION_S},
    )
    if kept.rowcount != len(set(reservations)):
        raise LostLease("a part of this machine that was reserved is no longer")


def release(c: Connection, *, reservation: UUID) -> None:
    """Give a part back. Given back before is fine."""
    _give_back(c, [reservation])


def reap(c: Connection, *, host: str, owner_is_gone: Callable[[Owner], bool]) -> int:
    """How many reservations were taken from owners that are gone, or that were not heard of for too long."""
    rows: list[Any] = list(
        c.execute(
            text("""
                SELECT id, owner_host, owner_pid, lock_path, expires_at <= zarrmill_now() AS ran_out
                FROM reservations WHERE host_key = :host ORDER BY id FOR UPDATE SKIP LOCKED
            """),
            {"host": host},
        )
    )
    left = [
        row.id
        for row in rows
        if row.ran_out or owner_is_gone(Owner(host=row.owner_host, pid=row.owner_pid, lock_path=row.lock_path))
    ]
    return _give_back(c, left)


def _give_back(c: Connection, reservations: list[UUID]) -> int:
    if not reservations:
        return 0
    gone: int | None = c.scalar(
        text("""
            WITH gone AS (DELETE FROM reservations WHERE id = ANY(CAST(:ids AS uuid[])) RETURNING *),
            sums AS (
                SELECT host_key, sum(memory_bytes)::bigint AS memory, sum(scratch_bytes)::bigint AS scratch,
                       sum(slots)::bigint AS slots, count(*) AS many
                FROM gone GROUP BY host_key
            ), back AS (
                UPDATE hosts h
                SET free_memory_bytes = free_memory_bytes + memory, free_scratch_bytes = free_scratch_bytes + scratch,
                    free_slots = free_slots + sums.slots
                FROM sums WHERE h.key = sums.host_key
                RETURNING sums.many
            )
            SELECT COALESCE(sum(many), 0)::bigint FROM back
        """),
        {"ids": reservations},
    )
    return gone or 0


def free(c: Connection, *, host: str) -> Part | None:
    """What of a machine nobody has reserved; None for one that was never declared."""
    row = c.execute(
        text("SELECT free_memory_bytes, free_scratch_bytes, free_slots FROM hosts WHERE key = :host"), {"host": host}
    ).one_or_none()
    if row is None:
        return None
    return Part(memory_bytes=row.free_memory_bytes, scratch_bytes=row.free_scratch_bytes, slots=row.free_slots)
