"""Shapes of tables, units and names: what channels.tsv and events.tsv hold in their columns."""

from __future__ import annotations

from corpus_beside import BOTH, CHANNELS, EVENTS, GO, GO_TSV, row
from corpus_row import beside, channels, plain

SHAPES = [
    row(
        "shape of tables",
        "shapeall",
        beside(events='onset\tduration\ttrial_type\t\r\n0.5\t0.1\t"go"\t\r\n\r\n  \r\n2.0\t0.1\tstop\r\n'),
        plain(events=GO),
    ),
    row(
        "shape of tables",
        "shapecr",
        beside(events=GO_TSV.replace("\n", "\r")),
        plain(events=GO),
    ),
    row(
        "shape of tables",
        "shapeshort",
        beside(events="onset\tduration\ttrial_type\n0.5\t0.1\tgo\n1.5\n2.0\t0.1\tstop\tmore\tcells\n"),
        plain(
            events=(GO[0], (1.5, None, None, None), GO[1]),
            notes=(
                f"{EVENTS}: 1 row has fewer cells than the header",
                f"{EVENTS}: 1 row has cells beyond the header, which were left out",
            ),
        ),
    ),
    row(
        "shape of tables",
        "shapequotes",
        beside(events='onset\tduration\ttrial_type\n1\t0\t"say ""hi"""\n2\t0\t5" wide\n3\t0\t"a\tb"\n'),
        plain(events=((1.0, 0.0, 'say "hi"', None), (2.0, 0.0, '5" wide', None), (3.0, 0.0, "a\tb", None))),
    ),
    row(
        "shape of tables",
        "shapebare",
        beside(events="onset\tduration\ttrial_type"),
        plain(events=(), entry={"n_events": 0, "trial_types": {}}),
    ),
    row(
        "headers of tables",
        "headtwice",
        beside(events="onset\tduration\thed\tHED\tvalue\tvalue\t\n1\t0\ta\tb\t7\t8\tlost\n"),
        plain(
            events=((1.0, 0.0, None, "7"),),
            notes=(
                f"{EVENTS}: the header value is repeated; a later one is prefixed with x_",
                f"{EVENTS}: 1 row has cells beyond the header, which were left out",
            ),
        ),
    ),
    row(
        "headers of tables",
        "headcase",
        beside(events=" Onset \tDURATION\tTrial_Type\n1\t0\ta\n"),
        plain(events=((1.0, 0.0, "a", None),)),
    ),
    row(
        "headers of tables",
        "headclash",
        beside(events="onset\tduration\tsubject\tsample_index\tonset_s\n1\t0\tx\t9\ty\n"),
        plain(events=((1.0, 0.0, None, None),)),
    ),
]

UNUSABLE = [
    row(
        "events that cannot be used", "evempty", beside(events=""), plain(notes=(f"{EVENTS} is empty and is not used",))
    ),
    row(
        "events that cannot be used",
        "evblank",
        beside(events="\n \n"),
        plain(notes=(f"{EVENTS} is empty and is not used",)),
    ),
    row(
        "events that cannot be used",
        "evnohead",
        beside(events="0.5\t0.1\tgo\n2.0\t0.1\tstop\n"),
        plain(notes=(f"{EVENTS} has no onset column and is not used",)),
    ),
    row(
        "events that cannot be used",
        "evcommas",
        beside(events="onset,duration,trial_type\n1,0,go\n"),
        plain(notes=(f"{EVENTS} has no onset column and is not used",)),
    ),
    row(
        "events that cannot be used",
        "evbinary",
        beside(events=bytes(range(256)) * 4),
        plain(notes=(f"{EVENTS} is binary, no text, and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chempty",
        beside(channels=""),
        plain(read_error=True, notes=(f"{CHANNELS} is empty and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chnoname",
        beside(channels="label\tunits\nA\tuV\n"),
        plain(read_error=True, notes=(f"{CHANNELS} has no name column and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chnohead",
        beside(channels="A\tEEG\tuV\nB\tEEG\tuV\n"),
        plain(read_error=True, notes=(f"{CHANNELS} has no name column and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chcommas",
        beside(channels="name,type,units\nA,EEG,uV\n"),
        plain(read_error=True, notes=(f"{CHANNELS} has no name column and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chbinary",
        beside(channels=b"name\0type\0" * 20),
        plain(read_error=True, notes=(f"{CHANNELS} is binary, no text, and is not used",)),
    ),
    row(
        "channels that cannot be used",
        "chonlyhead",
        beside(channels="name\ttype\tunits\n"),
        plain(
            match=(0, 0, 2, 0),
            notes=(
                f"{CHANNELS} names no channel",
                f"{CHANNELS}: 2 channels without a row keep the file's type and unit (A, B)",
            ),
        ),
    ),
]


UNITS = [
    row(
        "units in channels.tsv",
        "unitmicro",
        beside(channels="name\ttype\tunits\nA\tEEG\tµV\nB\tEEG\tμV\n"),
        plain(units=("µV", "μV"), match=BOTH),
    ),
    row(
        "units in channels.tsv",
        "unitcp1252",
        beside(channels="name\ttype\tunits\nA\tEEG\tµV\nB\tEEG\tuV\n".encode("cp1252")),
        plain(units=("µV", "uV"), match=BOTH, notes=(f"{CHANNELS}: the file is cp1252, not UTF-8",)),
    ),
    row(
        "units in channels.tsv",
        "unitvolt",
        beside(channels=channels("A\tEEG\tV", "B\tEEG\tmV")),
        plain(
            units=("V", "mV"),
            match=BOTH,
            entry={
                "units_report": {
                    "converted": 2,
                    "relabelled": 0,
                    "kept_importer_unit": 0,
                    "units_column_present": True,
                    "sidecar": CHANNELS,
                    "sidecar_supplied": False,
                }
            },
        ),
    ),
    row(
        "units in channels.tsv",
        "unitodd",
        beside(channels=channels("A\tEEG\tn/a", "B\tEEG\tmicroV")),
        plain(match=BOTH, attributes={"channels_tsv_read_error": None}),
    ),
    row(
        "units in channels.tsv",
        "unitnone",
        beside(channels="name\ttype\nA\tEEG\nB\tEOG\n"),
        plain(match=BOTH, types=("EEG", "EOG"), notes=(f"{CHANNELS} has no units column",)),
    ),
]

NAMES = [
    row(
        "names in channels.tsv",
        "nameswap",
        beside(channels=channels("B\tEOG\tuV", "A\tEEG\tuV")),
        plain(match=BOTH, types=("EEG", "EOG")),
    ),
    row(
        "names in channels.tsv",
        "namecase",
        beside(channels=channels("a\tEOG\tuV", "B\tEEG\tuV")),
        plain(
            match=(2, 1, 0, 0),
            types=("EOG", "EEG"),
            notes=(f"{CHANNELS}: 1 names that differ in case only are applied (a for A)",),
        ),
    ),
    row(
        "names in channels.tsv",
        "namemissing",
        beside(channels=channels("A")),
        plain(match=(1, 0, 1, 0), notes=(f"{CHANNELS}: 1 channels without a row keep the file's type and unit (B)",)),
    ),
    row(
        "names in channels.tsv",
        "nameextra",
        beside(channels=channels("A", "B", "C", "D", "E")),
        plain(
            match=(2, 0, 0, 3),
            attributes={"channels_tsv_count_mismatch": {"channels_tsv": 5, "in_file": 2, "in_store": 2}},
            notes=(
                f"{CHANNELS}: 3 rows name no channel of the file (C, D, E)",
                "channels.tsv lists 5 channels, the store has 2",
            ),
        ),
    ),
    row(
        "names in channels.tsv",
        "nametwice",
        beside(channels=channels("A\tEOG\tuV", "A\tECG\tuV", "B")),
        plain(
            match=BOTH,
            types=("ECG", "EEG"),
            attributes={"channels_tsv_count_mismatch": {"channels_tsv": 3, "in_file": 2, "in_store": 2}},
            notes=(
                f"{CHANNELS}: the last row counts of repeated names (A)",
                "channels.tsv lists 3 channels, the store has 2",
            ),
        ),
    ),
    row(
        "names in channels.tsv",
        "nametype",
        beside(channels=channels("A\teeg\tuV", "B\tEEGG\tuV")),
        plain(match=BOTH, notes=(f"{CHANNELS}: types that are not known are left out (EEGG)",)),
    ),
]
