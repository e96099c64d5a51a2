"""The objects of one git repository, read through one ``git cat-file --batch`` for as long as the source is open."""

from __future__ import annotations

import re
import subprocess
import threading
import weakref
from contextlib import contextmanager, suppress
from itertools import islice
from typing import IO, TYPE_CHECKING

from contract.codes import PendingReason
from contract.errors import NotNow
from tasks.sources.git_command import environment, git_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["GitObjects", "is_object_id"]

_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_BLOCK_BYTES = 1 << 20
# git answers while we still ask: what is asked at once must fit the pipe, 64 KiB, or both would wait for the other.
_ASKED_AT_ONCE = 512


def is_object_id(text: str) -> bool:
    """Whether ``text`` is the full name of an object: 40 lower-case hex characters."""
    return _OBJECT_ID.fullmatch(text) is not None


class GitObjects:
    """Blobs by their ids. One process, started when first asked and again should it die; for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, blob: str, *, limit_bytes: int) -> bytes:
        """The content of a blob.

        Raises
        ------
        NotNow
            The repository does not hold it, or git does not answer.
        ValueError
            It is longer than ``limit_bytes``.
        """
        with self._talking() as process:
            size = self._ask(process, blob)
            if size > limit_bytes:
                self._skip(process, size)
                raise ValueError(f"the blob {blob} has {size} bytes, more than {limit_bytes}")
            return self._content(process, size)

    def read_many(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Id and content of each blob, in order; the ids are sent ahead. For small blobs, and not beside other calls.

        Raises
        ------
        NotNow
            As ``read``.
        """
        waiting = iter(blobs)
        while batch := list(islice(waiting, _ASKED_AT_ONCE)):
            with self._talking() as process:
                self._send(process, batch)
                contents = [(blob, self._content(process, self._size(process, blob))) for blob in batch]
            yield from contents

    def copy(self, blob: str, path: Path) -> int:
        """Write the content of a blob into a new file; its bytes. Raises NotNow as ``read``, and OSError."""
        path.unlink(missing_ok=True)
        with path.open("xb") as file, self._talking() as process:
            size = left = self._ask(process, blob)
            while left:
                left -= file.write(self._exactly(process, min(left, _BLOCK_BYTES)))
            self._end_of_content(process)
        return size

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    @contextmanager
    def _talking(self) -> Iterator[subprocess.Popen[bytes]]:
        """One question and its answer. Whatever breaks it off ends the process: the rest of the answer is still in the pipe."""
        with self._lock:
            process = self._running()
            try:
                yield process
            except ValueError:
                raise
            except BrokenPipeError as error:
                self._end()
                raise _trouble("git ended while it was asked") from error
            except BaseException:
                self._end()
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            try:
                self._process = subprocess.Popen(
                    git_command("cat-file", "--batch"),
                    cwd=self._folder,
                    env=environment(self._folder),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise _trouble(f"git cannot be started ({error.strerror})") from error
            weakref.finalize(self, _finish, self._process)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _finish(process)

    def _ask(self, process: subprocess.Popen[bytes], blob: str) -> int:
        self._send(process, [blob])
        return self._size(process, blob)

    def _send(self, process: subprocess.Popen[bytes], blobs: list[str]) -> None:
        if not all(map(is_object_id, blobs)):
            raise ValueError("what is asked of git is no object id")
        asked = _pipe(process.stdin)
        asked.write("".join(f"{blob}\n" for blob in blobs).encode("ascii"))
        asked.flush()

    def _size(self, process: subprocess.Popen[bytes], blob: str) -> int:
        answer = _pipe(process.stdout).readline().split()
        if len(answer) == 3 and answer[0] == blob.encode() and answer[1] == b"blob":
            return int(answer[2])
        if len(answer) == 2 and answer[1] == b"missing":
            raise _trouble(f"the repository does not hold the object {blob}; is it a partial clone?")
        raise _trouble(f"git does not answer for the object {blob}")

    def _content(self, process: subprocess.Popen[bytes], size: int) -> bytes:
        content = self._exactly(process, size)
        self._end_of_content(process)
        return content

    def _skip(self, process: subprocess.Popen[bytes], size: int) -> None:
        while size:
            size -= len(self._exactly(process, min(size, _BLOCK_BYTES)))
        self._end_of_content(process)

    def _end_of_content(self, process: subprocess.Popen[bytes]) -> None:
        self._exactly(process, 1)

    def _exactly(self, process: subprocess.Popen[bytes], size: int) -> bytes:
        content = _pipe(process.stdout).read(size)
        if len(content) != size:
            raise _trouble("git ended while an object was read")
        return content


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "the process was started with pipes"
    return pipe


def _finish(process: subprocess.Popen[bytes]) -> None:
    """End the process: it ends by itself when nothing more can be asked."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _trouble(detail: str) -> NotNow:
    return NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False)
