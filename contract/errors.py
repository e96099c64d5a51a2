"""The error tree, grouped by what the one who catches it does.

::

    ZarrmillError                    every error of ours; has a stable code, a sentence and an operator's detail
    ├── Refused              exit 2  input, settings or arguments are wrong; the sentence names field and way out
    ├── Busy                 exit 4  another run holds the dataset
    ├── NotServed            exit 1  a reader asks for what has no store: it failed, is pending, or is not there at all
    ├── NothingPublished     exit 1  the run ended without publishing anything
    ├── RecordingFailed              a verdict on one recording: goes to failures[] with its FailureCode
    ├── NotNow                       a condition of the machine: the recording stays pending
    ├── LostLease                    the attempt or the run was superseded; whoever catches it writes nothing more
    ├── StorageError                 an object store did not do what was asked; nothing is known of the object
    │   ├── StorageDenied            the credentials or rights do not do: somebody must act
    │   └── StorageUnavailable       throttled, broken or out of reach after every retry: later
    └── PublishError
        ├── PreconditionFailed       a conditional write met another version
        └── PublishConflict  exit 1  it did so twice

All of them pickle, because they cross process borders.
"""

from __future__ import annotations

from typing import Any, ClassVar

from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, FailureCode, PendingReason

__all__ = [
    "Busy",
    "LostLease",
    "NotNow",
    "NotServed",
    "NothingPublished",
    "PreconditionFailed",
    "PublishConflict",
    "PublishError",
    "RecordingFailed",
    "Refused",
    "StorageDenied",
    "StorageError",
    "StorageUnavailable",
    "ZarrmillError",
]


class ZarrmillError(Exception):
    """An error with a stable ``code``, a sentence for people and an optional operator's detail."""

    code: ClassVar[str] = "zarrmill_error"
    exit_code: ClassVar[int] = 1

    def __init__(self, sentence: str, *, detail: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.detail = detail

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.sentence, self.__dict__.copy()))


def _rebuild(cls: type[ZarrmillError], sentence: str, state: dict[str, Any]) -> ZarrmillError:
    error = cls.__new__(cls)
    Exception.__init__(error, sentence)
    error.__dict__.update(state)
    return error


class Refused(ZarrmillError):
    """Input, settings or arguments are wrong. The sentence names the file or field and the way out."""

    code = "refused"
    exit_code = 2


class Busy(ZarrmillError):
    """Another run holds the dataset."""

    code = "busy"
    exit_code = 4


class NotServed(ZarrmillError):
    """A reader asks for what is not served.

    ``state`` is ``failed``, ``pending`` or ``unknown``; ``reason`` is the failure code or the pending reason, None for
    what is not known at all.
    """

    code = "not_served"

    def __init__(self, sentence: str, *, state: str, reason: str | None = None, detail: str | None = None) -> None:
        super().__init__(sentence, detail=detail)
        self.state = state
        self.reason = reason


class NothingPublished(ZarrmillError):
    """The run ended without publishing anything."""

    code = "nothing_published"


class RecordingFailed(ZarrmillError):
    """A verdict on one recording that holds until its data or the converter changes."""

    code = "recording_failed"

    def __init__(self, failure: FailureCode, *, detail: str | None = None) -> None:
        super().__init__(FAILURE_SENTENCES[failure], detail=detail)
        self.failure = failure


class NotNow(ZarrmillError):
    """A condition of the machine, never a property of the recording.

    ``counted`` says whether it costs the recording one of its five attempts.
    """

    code = "not_now"

    def __init__(self, reason: PendingReason, *, detail: str | None = None, counted: bool = True) -> None:
        super().__init__(PENDING_SENTENCES[reason], detail=detail)
        self.reason = reason
        self.counted = counted


class LostLease(ZarrmillError):
    """The attempt or the run was superseded."""

    code = "lost_lease"


class StorageError(ZarrmillError):
    """An object store did not do what was asked. It never means that an object is absent."""

    code = "storage_error"


class StorageDenied(StorageError):
    """The object store refused the credentials, or they may not do this."""

    code = "storage_denied"


class StorageUnavailable(StorageError):
    """The object store was out of reach, throttled or broken at every try."""

    code = "storage_unavailable"


class PublishError(ZarrmillError):
    """Something could not be published."""

    code = "publish_error"


class PreconditionFailed(PublishError):
    """A conditional write met another version than the one it names."""

    code = "precondition_failed"


class PublishConflict(PublishError):
    """A document was changed by somebody else twice while this run published it."""

    code = "publish_conflict"
