"""Tables of events in every state in which people upload them."""

from __future__ import annotations

from corpus_beside import EVENTS, GO, GO_TSV, row
from corpus_row import Row, beside, events, plain


def _encoded(name: str, data: bytes, encoding: str | None) -> Row:
    notes = () if encoding is None else (f"{EVENTS}: the file is {encoding}, not UTF-8",)
    return row("events encoding", name, beside(events=data), plain(events=GO, notes=notes))


ENCODINGS = [
    _encoded("evbom", GO_TSV.encode("utf-8-sig"), None),
    _encoded("evutf16le", GO_TSV.encode("utf-16"), "utf-16"),
    _encoded("evutf16be", b"\xfe\xff" + GO_TSV.encode("utf-16-be"), "utf-16"),
    row(
        "events encoding",
        "evlatin",
        beside(events="onset\tduration\ttrial_type\n1\t0\tcafé\n".encode("cp1252")),
        plain(events=((1.0, 0.0, "café", None),), notes=(f"{EVENTS}: the file is cp1252, not UTF-8",)),
    ),
    row(
        "events encoding",
        "evunicode",
        beside(events="onset\tduration\ttrial_type\n1\t0\t你好 µ\n"),
        plain(events=((1.0, 0.0, "你好 µ", None),), entry={"trial_types": {"你好 µ": 1}}),
    ),
]

ONSETS = [
    row(
        "onsets that are missing",
        "onmixed",
        beside(events=events("2.0\t0\ta", "n/a\t0\tb", "nan\t0\tc", "\t0\td", "0.5\t0\te")),
        plain(
            events=(
                (0.5, 0.0, "e", None),
                (2.0, 0.0, "a", None),
                (None, 0.0, "b", None),
                (None, 0.0, "c", None),
                (None, 0.0, "d", None),
            ),
            entry={"n_events": 5},
            notes=(f"{EVENTS}: 3 rows have no onset",),
        ),
    ),
    row(
        "onsets that are missing",
        "onall",
        beside(events=events("n/a\t0\ta", "N/A\t0\tb")),
        plain(
            events=((None, 0.0, "a", None), (None, 0.0, "b", None)),
            notes=(f"{EVENTS}: no row has an onset",),
        ),
    ),
    row(
        "onsets that are missing",
        "onwords",
        beside(events=events("1\t0\ta", "later\t0\tb", "inf\t0\tc", "1e400\t0\td", "0x10\t0\te")),
        plain(
            events=((1.0, 0.0, "a", None), *((None, 0.0, kind, None) for kind in "bcde")),
            notes=(f"{EVENTS}: 4 rows have an onset that is no number",),
        ),
    ),
    row(
        "onsets that are missing",
        "onsigns",
        beside(events=events("+2.5e0\t0\ta", "-1\t0\tb", ".5\t0\tc", "90000\t0\td")),
        plain(events=((-1.0, 0.0, "b", None), (0.5, 0.0, "c", None), (2.5, 0.0, "a", None), (90000.0, 0.0, "d", None))),
    ),
    row(
        "onsets that tie",
        "ontie",
        beside(events=events("1\t0\tc", "1\t0\ta", "0.5\t0\tz", "1.0\t0\tb")),
        plain(events=((0.5, 0.0, "z", None), (1.0, 0.0, "c", None), (1.0, 0.0, "a", None), (1.0, 0.0, "b", None))),
    ),
    row(
        "onsets that tie",
        "onhalf",
        beside(events=events("0.005\t0\ta", "0.015\t0\tb", "-0.005\t0\tc")),
        plain(events=((-0.005, 0.0, "c", None), (0.005, 0.0, "a", None), (0.015, 0.0, "b", None))),
    ),
    row(
        "durations",
        "durodd",
        beside(events=events("1\tn/a\ta", "2\t\tb", "3\tlong\tc", "4\t-1\td")),
        plain(
            events=((1.0, None, "a", None), (2.0, None, "b", None), (3.0, None, "c", None), (4.0, -1.0, "d", None)),
            notes=(f"{EVENTS}: 1 row has a duration that is no number",),
        ),
    ),
    row(
        "durations",
        "durnone",
        beside(events="onset\ttrial_type\n1\ta\n"),
        plain(events=((1.0, None, "a", None),)),
    ),
]

COMMAS = [
    row(
        "decimal comma",
        "comma",
        beside(events=events("0,5\t0\ta", "1,25\t0,1\tb")),
        plain(
            events=((0.5, 0.0, "a", None), (1.25, 0.1, "b", None)),
            notes=(
                f"{EVENTS}: the comma of the onset column is read as a decimal one",
                f"{EVENTS}: the comma of the duration column is read as a decimal one",
            ),
        ),
    ),
    row(
        "decimal comma",
        "commamixed",
        beside(events=events("0,5\t0\ta", "1.25\t0\tb")),
        plain(
            events=((1.25, 0.0, "b", None), (None, 0.0, "a", None)),
            notes=(f"{EVENTS}: 1 row has an onset that is no number",),
        ),
    ),
    row(
        "decimal comma",
        "commathousands",
        beside(events=events("1,234\t0\ta", "2\t0\tb")),
        plain(
            events=((2.0, 0.0, "b", None), (None, 0.0, "a", None)),
            notes=(f"{EVENTS}: 1 row has an onset that is no number",),
        ),
    ),
]

LABELS = [
    row(
        "trial types",
        "typena",
        beside(
            events=events("1\t0\tn/a\t1", "2\t0\tn/a\t2", "3\t0\tn/a\t1", header="onset\tduration\ttrial_type\tvalue")
        ),
        plain(
            events=((1.0, 0.0, None, "1"), (2.0, 0.0, None, "2"), (3.0, 0.0, None, "1")),
            entry={"trial_types": {}, "n_events": 3},
        ),
    ),
    row(
        "trial types",
        "typeboth",
        beside(events=events("1\t0\tanswer\t201", "2\t0\tanswer\t202", header="onset\tduration\ttrial_type\tvalue")),
        plain(events=((1.0, 0.0, "answer", "201"), (2.0, 0.0, "answer", "202")), entry={"trial_types": {"answer": 2}}),
    ),
    row(
        "trial types",
        "typehuge",
        beside(events=events(*(f"{i}\t0\t{i:03d}{'x' * 297}" for i in range(40)))),
        plain(events=tuple((float(i), 0.0, f"{i:03d}{'x' * 297}", None) for i in range(40)), entry={"n_events": 40}),
    ),
    row(
        "trial types",
        "typeblank",
        beside(events="onset\tduration\ttrial_type\tvalue\n1\t0\t \t \n2\t0\tN/A\tn/A\n"),
        plain(events=((1.0, 0.0, None, None), (2.0, 0.0, None, None)), entry={"trial_types": {}}),
    ),
    row(
        "meaning of values",
        "levels",
        beside(
            events=GO_TSV,
            levels='{"trial_type": {"Levels": {"go": "press", "stop": {"Description": "wait"}, "odd": 3}}}',
        ),
        plain(events=GO),
    ),
]
