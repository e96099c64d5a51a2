"""Many small recordings in a process that is warm: processor milliseconds a recording, zarrmill beside biosigIO; ``convert.py --small``.

What a conversion costs whatever its size is lost in the minutes of a long one, and is all there is of a short one. Each way has a process of
its own, which has imported everything and converted a few; then the two take turns, some recordings each time, so that a busy machine is as
busy for both. ``zarrmill`` is the whole conversion of a child (header, sidecars, store, attributes, gate, digests, and giving its memory back),
``memory`` biosigIO's ``Recording.from_file(...)``, the channels.tsv and events.tsv applied, and ``to_zarr``; no more.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["table"]

SIZES = {"4 x 10 s": (4, 10), "16 x 60 s": (16, 60)}
_WAYS = ("memory", "zarrmill")
_AT_ONCE, _WARM = 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRow:
    """One format and size: processor milliseconds a recording, and the median of the turns' ratios."""

    format: str
    size: str
    memory_ms: float
    zarrmill_ms: float
    ratio: float


def table(
    write: Callable[[Path, str, int, int, int], Path],
    kinds: Sequence[str],
    environment: dict[str, str],
    *,
    rounds: int,
    as_json: bool,
) -> None:
    """Print the rows of all sizes and formats; ``write`` makes a file of so many channels and seconds in a folder."""
    rows: list[SmallRow] = []
    for size, (channels, seconds) in SIZES.items():
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                path = write(Path(folder), kind, channels, seconds, 1)
                row = measured(path, kind, size, rounds=rounds, environment=environment)
            rows.append(row)
            if not as_json:
                print(
                    f"{size:10} {kind:11} memory {row.memory_ms:6.1f} zarrmill {row.zarrmill_ms:6.1f} ms "
                    f"{row.ratio:5.2f} of memory",
                    flush=True,
                )
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))


def measured(path: Path, kind: str, size: str, *, rounds: int, environment: dict[str, str]) -> SmallRow:
    """The row of the recording at ``path``, a file of BIDS name below a folder ``source``."""
    stem = path.with_name(path.stem.rsplit("_", 1)[0])
    n_channels, seconds = SIZES[size]
    labels = [f"{'MEG' if kind == 'fif' else 'E'}{number + 1}" for number in range(n_channels)]
    rows = "".join(
        f"{label}\t{'MEGMAG' if kind == 'fif' else 'EEG'}\t{'T' if kind == 'fif' else 'uV'}\n" for label in labels
    )
    Path(f"{stem}_channels.tsv").write_text("name\ttype\tunits\n" + rows)
    events = "".join(f"{at + 0.5}\t0.1\t{'go' if at % 2 else 'stop'}\n" for at in range(seconds))
    Path(f"{stem}_events.tsv").write_text("onset\tduration\ttrial_type\n" + events)
    children = {way: _Child(way, path, kind, environment) for way in _WAYS}
    for child in children.values():
        child.cpu_s(_WARM)
    turns = [{way: child.cpu_s(_AT_ONCE) / _AT_ONCE * 1e3 for way, child in children.items()} for _ in range(rounds)]
    for child in children.values():
        child.end()
    return SmallRow(
        format=kind,
        size=size,
        memory_ms=round(min(turn["memory"] for turn in turns), 1),
        zarrmill_ms=round(min(turn["zarrmill"] for turn in turns), 1),
        ratio=round(statistics.median(turn["zarrmill"] / turn["memory"] for turn in turns), 3),
    )


class _Child:
    """A process that converts the recording again and again, as often as it is told."""

    def __init__(self, way: str, path: Path, kind: str, environment: dict[str, str]) -> None:
        command = [sys.executable, __file__, way, str(path), kind]
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def cpu_s(self, times: int) -> float:
        """Processor seconds of so many conversions."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{times}\n")
        self._process.stdin.flush()
        return float(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        """Let it end."""
        self._process.communicate()


def _serve(way: str, path: Path, kind: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
    import tasks.convert.preload

    assert tasks.convert.preload.PRELOADED
    if way == "zarrmill":  # as the fork server does before it forks a child
        gc.collect()
        gc.freeze()
    convert = {"memory": _theirs, "zarrmill": _ours}[way](path, kind)
    for line in sys.stdin:
        spent = 0.0
        for _ in range(int(line)):
            with tempfile.TemporaryDirectory() as folder:
                before = time.process_time()
                convert(Path(folder))
                spent += time.process_time() - before
        print(json.dumps(spent), flush=True)


def _ours(path: Path, kind: str) -> Callable[[Path], Any]:
    from conversion import order_for, recording_at

    from tasks.bids.recording import Sidecars
    from tasks.convert.child_process import _give_back
    from tasks.convert.recording import convert

    source = path.parents[2]
    stem = path.relative_to(source).as_posix().rsplit("_", 1)[0]
    sidecars = Sidecars(channels=stem + "_channels.tsv", events=stem + "_events.tsv")
    modality = "meg" if kind == "fif" else "eeg"
    order = order_for(
        recording_at(path.relative_to(source).as_posix(), kind.split(" ", 1)[0], modality, sidecars=sidecars)
    )

    def once(folder: Path) -> None:
        (folder / "source").symlink_to(source)
        convert(order, folder)
        _give_back()

    return once


def _theirs(path: Path, kind: str) -> Callable[[Path], Any]:
    import pandas as pd
    import zarr
    from biosigio import Recording
    from biosigio.bids import apply_channels_tsv

    stem = str(path).rsplit("_", 1)[0]

    def once(folder: Path) -> None:
        events = pd.read_csv(stem + "_events.tsv", sep="\t").rename(columns={"trial_type": "description"})
        with zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1}):
            recording = Recording.from_file(str(path), bids_channels="off")
            apply_channels_tsv(recording, stem + "_channels.tsv")
            for channel in recording.channels.values():
                channel["modality"] = "MEG" if kind == "fif" else "EEG"
            recording.to_zarr(str(folder / "x.zarr"), events_df=events, exclude_subject_info=True)

    return once


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
