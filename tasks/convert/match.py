"""Which rows of a channels.tsv speak of which channels of a finished store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["ChannelsMatch", "match_channels"]

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsMatch:
    """How the names of a channels.tsv and the labels of a store meet; names count once however often they stand.

    Parameters
    ----------
    matched
        Channels that a row speaks of.
    case_only
        (row, label) of those that meet only when case is ignored, and are applied.
    unlisted
        Labels that no row speaks of: they keep the file's type and unit.
    unknown
        Names of rows that speak of no channel.
    renamed
        Of those, names that the file itself repeats, so that each of its channels has another label here.
    """

    matched: int
    case_only: tuple[tuple[str, str], ...] = ()
    unlisted: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()

    def as_attribute(self) -> dict[str, object]:
        """The root attribute ``channels_tsv_match``: counts, and at most five examples of each kind."""
        return {
            "matched": self.matched,
            "matched_case_only": len(self.case_only),
            "unmatched_channels": len(self.unlisted),
            "unmatched_rows": len(self.unknown),
            "unmatched_renamed": len(self.renamed),
            "examples": {
                "matched_case_only": [f"{row} -> {label}" for row, label in self.case_only[:_EXAMPLES]],
                "unmatched_channels": list(self.unlisted[:_EXAMPLES]),
                "unmatched_rows": list(self.unknown[:_EXAMPLES]),
            },
        }

    def notes(self, path: str) -> Iterator[str]:
        """A sentence for everything that did not meet exactly."""
        for names, said in (
            (
                tuple(f"{row} for {label}" for row, label in self.case_only),
                "names that differ in case only are applied",
            ),
            (self.unlisted, "channels without a row keep the file's type and unit"),
            (self.renamed, "names that the file repeats are applied to none of their channels"),
            (tuple(name for name in self.unknown if name not in self.renamed), "rows name no channel of the file"),
        ):
            if names:
                more = ", …" if len(names) > _EXAMPLES else ""
                yield f"{path}: {len(names)} {said} ({', '.join(names[:_EXAMPLES])}{more})"


def match_channels(names: Sequence[str], labels: Sequence[str], renamed: Mapping[str, str]) -> ChannelsMatch:
    """Match by name, never by position, by biosigIO's rule.

    A row is the channel of exactly its name; else, when case is ignored, the only one that no row names exactly, if no
    other such row could be meant.

    Parameters
    ----------
    names
        The sidecar's names.
    labels
        The store's labels.
    renamed
        The store's label to the file's own, for labels that were changed because the file repeats them.
    """
    rows, known = list(dict.fromkeys(names)), dict.fromkeys(labels)
    exact = {name for name in rows if name in known}
    rivals = Counter(name.casefold() for name in rows if name not in exact)
    folded: dict[str, list[str]] = {}
    for label in known:
        folded.setdefault(label.casefold(), []).append(label)
    case_only: list[tuple[str, str]] = []
    unknown: list[str] = []
    for name in rows:
        if name in exact:
            continue
        candidates = folded.get(name.casefold(), [])
        if len(candidates) == 1 and candidates[0] not in exact and rivals[name.casefold()] == 1:
            case_only.append((name, candidates[0]))
        else:
            unknown.append(name)
    met = exact | {label for _, label in case_only}
    originals = set(renamed.values())
    return ChannelsMatch(
        matched=len(met),
        case_only=tuple(case_only),
        unlisted=tuple(label for label in known if label not in met),
        unknown=tuple(unknown),
        renamed=tuple(name for name in unknown if name in originals),
    )
