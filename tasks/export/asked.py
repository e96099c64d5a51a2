"""What an export is asked to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from contract.errors import Refused
from contract.window import WindowAsked
from tasks.vneurotk.layout import Compression

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_WINDOW_S", "ExportAsked", "Mode", "Schema", "asked_of"]

Mode = Literal["epochs", "continuous"]
Schema = Literal[0, 1]
DEFAULT_WINDOW_S = (-0.2, 0.8)
_MOST_TRIAL_TYPES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAsked:
    """What a file is asked to hold of a recording. Names of options stand in its refusals.

    Parameters
    ----------
    group
        A channel group; None for the one with the most channels.
    start_s, stop_s
        The part of the recording, in seconds from its start; None for its end.
    window_s
        Seconds around an onset; None for the part as one window, unless trial types are named.
    trial_types
        The trial types that are kept; empty for all of them.
    channels
        Labels or rows, as in ``WindowAsked``; empty for all.
    mode
        How the file is laid out; None for epochs where there are trials, else continuous.
    schema
        Version of the format.
    compression
        How samples are compressed.
    with_stimuli
        Number stimuli by the image that ``stim_file`` names, and keep the images in the file.
    """

    group: str | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    window_s: tuple[float, float] | None = None
    trial_types: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    mode: Mode | None = None
    schema: Schema = 1
    compression: Compression = Compression()  # noqa: RUF009 - frozen
    with_stimuli: bool = False

    def __post_init__(self) -> None:
        self.part("recording")
        if len(self.trial_types) > _MOST_TRIAL_TYPES:
            raise Refused(f"--trial-type: more than {_MOST_TRIAL_TYPES} are named; leave it out for all of them.")
        if self.with_stimuli and not self.has_trials:
            raise Refused("--with-stimuli: without trials there are no stimuli; give a --window too.")

    @property
    def has_trials(self) -> bool:
        """Whether windows around events are asked for, and not the part as it is."""
        return self.window_s is not None or bool(self.trial_types)

    @property
    def window(self) -> tuple[float, float]:
        """The window around an onset, where there are trials."""
        return self.window_s or DEFAULT_WINDOW_S

    @property
    def layout(self) -> Mode:
        """The mode that the file has."""
        return self.mode or ("epochs" if self.has_trials else "continuous")

    def part(self, recording: str) -> WindowAsked:
        """The part of a recording that is read; raises Refused when it is none."""
        return WindowAsked(
            recording=recording, group=self.group, start_s=self.start_s, stop_s=self.stop_s, channels=self.channels
        )


def asked_of(
    part_s: tuple[float, float | None],
    window_s: tuple[float, float] | None,
    trial_types: Iterable[str] | None,
    channels: Iterable[str] | None,
    *,
    group: str | None,
    mode: str | None,
    schema: int,
    compression: str,
    with_stimuli: bool,
) -> ExportAsked:
    """What texts and numbers of a command line or of a form ask for.

    Raises
    ------
    Refused
        One of them is none; the sentence names the option.
    """
    return ExportAsked(
        group=group,
        start_s=part_s[0],
        stop_s=part_s[1],
        window_s=window_s,
        trial_types=tuple(trial_types or ()),
        channels=tuple(channels or ()),
        mode=_mode_of(mode),
        schema=_schema_of(schema),
        compression=Compression.parse(compression),
        with_stimuli=with_stimuli,
    )


def _mode_of(text: str | None) -> Mode | None:
    """The mode of this name; None for None. Raises Refused when there is no such mode."""
    for known in get_args(Mode):
        if text == known:
            return known  # type: ignore[no-any-return]  # one of the words of Mode
    if text is not None:
        raise Refused(f"--mode: {text[:40]!r} is none of {', '.join(get_args(Mode))}.")
    return None


def _schema_of(number: int) -> Schema:
    """The schema of this number. Raises Refused when it cannot be written."""
    for known in get_args(Schema):
        if number == known:
            return known  # type: ignore[no-any-return]  # one of the numbers of Schema
    raise Refused(f"--schema: {number} is none: 1, or 0 for vneurotk 0.0.1.")
