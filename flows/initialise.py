"""What must stand before anything converts: tables, a target that can be used, deployments. Done once, and seen to again each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import Refused
from db.migrate import HEAD, current, upgrade
from infra.services import check_prefect, database
from infra.storage import open_target
from infra.storage.bucket_setup import SetupStep
from infra.storage.s3_target import S3Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings
    from infra.storage.openness import Openness

__all__ = ["initialise", "openness_line"]


def initialise(settings: Settings, target_url: str, *, public: bool) -> Iterator[SetupStep]:
    """See to each thing in turn and say what was done; nothing is written that stands already.

    Raises
    ------
    Refused, StorageError
        Something cannot be made, or the bucket does not do what it was told, seen by unsigned requests. What was done before stays.
    """
    yield _tables(settings)
    target = open_target(target_url, settings)
    if isinstance(target, S3Target):
        yield from _bucket(target, public=public)
    else:
        target.prepare(public=public)
        yield SetupStep(name="target", done=False, sentence=f"{target.url} can be written")
    if settings.prefect_api_url is not None:
        yield _deployments(settings)


def _tables(settings: Settings) -> SetupStep:
    with database(settings) as url:
        before = current(url)
        upgrade(url)
    if before == HEAD:
        return SetupStep(name="database", done=False, sentence=f"its tables are those of this version ({HEAD})")
    was = "empty" if before is None else f"at {before}"
    return SetupStep(name="database", done=True, sentence=f"it was {was} and has the tables of this version ({HEAD})")


def _bucket(target: S3Target, *, public: bool) -> Iterator[SetupStep]:
    setup = target.setup()
    yield setup.make()
    if public:
        yield setup.allow_reading()
        yield setup.allow_pages()
    target.prepare(public=public)
    conditions = (
        "it decides conditions"
        if target.decides_conditions
        else "it decides no conditions: Postgres guards its documents"
    )
    yield SetupStep(name="target", done=False, sentence=f"{target.url} can be used; {conditions}")
    seen = target.openness()
    if public and not seen.is_as_published:
        raise Refused(
            f"{target.url} is not as a public bucket must be: {openness_line(seen)}. Its service may not know bucket policies or CORS; "
            "set them where it keeps them, then run init again"
        )
    yield SetupStep(name="unsigned", done=False, sentence=openness_line(seen))


def openness_line(seen: Openness) -> str:
    """What unsigned requests saw, in words."""

    def word(answer: bool | None) -> str:
        return "unknown" if answer is None else "yes" if answer else "no"

    return (
        f"anybody may read: {word(seen.may_read)}, list: {word(seen.may_list)}, write: {word(seen.may_write)}; "
        f"pages of other origins may read: {word(seen.cors)}"
    )


def _deployments(settings: Settings) -> SetupStep:
    from flows.deployments import register

    check_prefect(settings)
    count = len(register())
    return SetupStep(name="deployments", done=False, sentence=f"{count} are registered at {settings.prefect_api_url}")
