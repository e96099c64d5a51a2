"""The table from what happened to what it means for the recording."""

from __future__ import annotations

import errno
import pickle
import signal

import pytest
from biosigio import exceptions as engine

from contract.codes import FailureCode, PendingReason
from contract.errors import LostLease, NotNow, RecordingFailed
from tasks.convert.verdict import ChildExit, Verdict, VerdictKind, classify, classify_exit

FAILED, PENDING, RELEASED = VerdictKind.FAILED, VerdictKind.PENDING, VerdictKind.RELEASED
INFRA, MEMORY = PendingReason.INFRA_FAILURE, PendingReason.MEMORY_BUDGET


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


EXCEPTIONS = [
    (RecordingFailed(FailureCode.ANNEX_OBJECT_MISSING), FAILED, FailureCode.ANNEX_OBJECT_MISSING, False),
    (NotNow(MEMORY, counted=False), PENDING, MEMORY, False),
    (NotNow(INFRA), PENDING, INFRA, True),
    (LostLease("x"), RELEASED, INFRA, False),
    (KeyboardInterrupt(), RELEASED, INFRA, False),
    (engine.UnsupportedFormatError("x"), FAILED, FailureCode.UNSUPPORTED_FORMAT, False),
    (engine.FileReadError("x"), FAILED, FailureCode.FILE_READ_ERROR, False),
    (engine.NotContinuousRecordingError("x"), FAILED, FailureCode.NOT_CONTINUOUS, False),
    (engine.CorruptFileError("x"), FAILED, FailureCode.CORRUPT_OR_TRUNCATED, False),
    (engine.EmptyRecordingError("x"), FAILED, FailureCode.EMPTY_RECORDING, False),
    (engine.MixedSamplingRateError("x"), FAILED, FailureCode.FILE_READ_ERROR, False),
    (engine.BiosigIOError("x"), FAILED, FailureCode.FILE_READ_ERROR, False),
    (caused(engine.FileReadError("x"), OSError(errno.EIO, "x")), PENDING, INFRA, True),
    (caused(engine.CorruptFileError("x"), MemoryError()), PENDING, MEMORY, True),
    (MemoryError(), PENDING, MEMORY, True),
    (OSError(errno.ENOMEM, "x"), PENDING, MEMORY, True),
    (RuntimeError("can't start new thread"), PENDING, MEMORY, True),
    (caused(ValueError("while closing"), MemoryError()), PENDING, MEMORY, True),
    (OSError(errno.ENOSPC, "x"), PENDING, INFRA, True),
    (OSError(errno.EIO, "x"), PENDING, INFRA, True),
    (PermissionError(errno.EACCES, "x"), PENDING, INFRA, True),
    (OSError(errno.EMFILE, "x"), PENDING, INFRA, True),
    (ImportError("x"), PENDING, INFRA, True),
    (ValueError("a fault of ours"), PENDING, INFRA, True),
    (KeyError("a fault of ours"), PENDING, INFRA, True),
]


@pytest.mark.parametrize(
    ("error", "kind", "which", "counted"), EXCEPTIONS, ids=[f"{i}-{e[0]!r}" for i, e in enumerate(EXCEPTIONS)]
)
def test_an_exception_has_its_verdict(error: BaseException, kind: VerdictKind, which: str, counted: bool) -> None:
    verdict = classify(error)
    assert (verdict.kind, verdict.code or verdict.reason, verdict.counted) == (kind, which, counted)
    assert isinstance(verdict.code, FailureCode) == (kind is FAILED)
    assert pickle.loads(pickle.dumps(verdict)) == verdict


EXITS = [
    (ChildExit(signal=9, killed_for="memory", last_rss_bytes=7, permitted_bytes=5), PENDING, MEMORY, True),
    (ChildExit(signal=9, killed_for="timeout"), PENDING, INFRA, True),
    (ChildExit(signal=15, killed_for="stop"), RELEASED, INFRA, False),
    (ChildExit(signal=15, killed_for="cancelled"), RELEASED, INFRA, False),
    (ChildExit(killed_for="fork_server"), RELEASED, INFRA, False),
    (ChildExit(signal=9, oom_kill_seen=True), PENDING, MEMORY, True),
    (ChildExit(signal=9, exitcode=-9, last_rss_bytes=90, permitted_bytes=100), PENDING, MEMORY, True),
    (ChildExit(signal=9, exitcode=-9, last_rss_bytes=89, permitted_bytes=100), PENDING, INFRA, True),
    (ChildExit(signal=9, exitcode=-9, last_rss_bytes=0, permitted_bytes=0), PENDING, INFRA, True),
    (ChildExit(last_rss_bytes=95, permitted_bytes=100), PENDING, MEMORY, True),
    (ChildExit(signal=signal.SIGABRT, last_rss_bytes=95, permitted_bytes=100), PENDING, MEMORY, True),
    (ChildExit(signal=signal.SIGABRT, last_rss_bytes=5, permitted_bytes=100), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGSEGV, last_rss_bytes=95, permitted_bytes=100), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGBUS, last_rss_bytes=95, permitted_bytes=100), PENDING, INFRA, True),
    (ChildExit(exitcode=1, oom_kill_seen=True), PENDING, INFRA, True),
    (ChildExit(oom_kill_seen=True), PENDING, MEMORY, True),
    (ChildExit(signal=9, killed_for="timeout", oom_kill_seen=True), PENDING, INFRA, True),
    (ChildExit(signal=9), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGBUS), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGBUS, oom_kill_seen=True), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGSEGV), PENDING, INFRA, True),
    (ChildExit(signal=signal.SIGTERM), RELEASED, INFRA, False),
    (ChildExit(signal=64), PENDING, INFRA, True),
    (ChildExit(exitcode=1), PENDING, INFRA, True),
    (ChildExit(), PENDING, INFRA, True),
]


@pytest.mark.parametrize(("ended", "kind", "reason", "counted"), EXITS)
def test_a_child_that_died_never_condemns_its_recording(
    ended: ChildExit, kind: VerdictKind, reason: PendingReason, counted: bool
) -> None:
    verdict = classify_exit(ended)
    assert (verdict.kind, verdict.reason, verdict.counted, verdict.code) == (kind, reason, counted, None)
    assert verdict.error


def test_what_only_released_it_may_be_tried_again_in_the_same_run() -> None:
    assert [case[0] for case in EXITS if classify_exit(case[0]).again] == [
        case[0] for case in EXITS if case[1] is RELEASED
    ]
    assert [case[0] for case in EXCEPTIONS if classify(case[0]).again] == [
        case[0] for case in EXCEPTIONS if case[1] is RELEASED
    ]


@pytest.mark.parametrize(
    "verdict",
    [
        classify(OSError(errno.ENOSPC, "x")),
        classify(OSError(errno.EDQUOT, "x")),
        classify(caused(engine.FileReadError("x"), OSError(errno.ENOSPC, "x"))),
        classify_exit(ChildExit(signal=signal.SIGBUS)),
    ],
)
def test_a_full_disk_counts_only_against_who_took_more_than_it_was_given(verdict: Verdict) -> None:
    assert (verdict.disk_full, verdict.counted, verdict.again) == (True, True, False)
    of_a_neighbour = verdict.of_a_neighbour()
    assert (of_a_neighbour.counted, of_a_neighbour.again) == (False, True)
    assert of_a_neighbour.reason is INFRA


def test_other_trouble_is_no_full_disk() -> None:
    assert not classify(OSError(errno.EIO, "x")).disk_full
    assert not classify_exit(ChildExit(signal=signal.SIGSEGV)).disk_full


def test_a_verdict_carries_no_local_path_and_no_secret() -> None:
    path = "/home/somebody/data.edf"
    error = caused(engine.FileReadError(f"cannot read {path}?token=abcdef"), FileNotFoundError(errno.ENOENT, "x", path))
    with pytest.raises(engine.FileReadError) as caught:
        raise error
    verdict = classify(caught.value)
    assert verdict.code is FailureCode.FILE_READ_ERROR
    said = f"{verdict.error}\n{verdict.traceback}"
    assert "/home/somebody" not in said
    assert "abcdef" not in said
    assert "FileReadError" in (verdict.error or "")
    assert "test_verdict" not in (verdict.error or "")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("the file is cut (/tmp/a/x.edf): /tmp/a/x.edf: bad header", "CorruptFileError: the file is cut: bad header"),
        ("/tmp/a/x.edf: bad header", "CorruptFileError: bad header"),
        ("cannot read '/tmp/a/x.edf'", "CorruptFileError: cannot read the file"),
    ],
)
def test_the_place_of_a_path_is_not_published_either(message: str, said: str) -> None:
    assert classify(engine.CorruptFileError(message)).error == said


def test_a_traceback_is_bounded_and_keeps_its_end() -> None:
    def deep(n: int) -> None:
        if n == 0:
            raise ValueError("the end " + "x" * 500)
        deep(n - 1)

    try:
        deep(300)
    except ValueError as error:
        verdict = classify(error)
    assert len(verdict.traceback or "") <= 8_000
    assert "the end" in (verdict.traceback or "").splitlines()[-1]
