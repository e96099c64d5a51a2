"""Sidecars in every state in which people upload them. The recording is a sound EDF; it is always served."""

from __future__ import annotations

from collections.abc import Callable

from corpus_row import Event, Place, Row, Served, beside, channels, edf, events, plain

AB = channels("A", "B")
FOUR = (4, 0, 0, 0)
BOTH = (2, 0, 0, 0)
GO: tuple[Event, ...] = ((0.5, 0.1, "go", None), (2.0, 0.1, "stop", None))
GO_TSV = "onset\tduration\ttrial_type\n0.5\t0.1\tgo\n2.0\t0.1\tstop\n"
EVENTS = "sub-{name}/eeg/{stem}_events.tsv"
CHANNELS = "sub-{name}/eeg/{stem}_channels.tsv"
ELECTRODES = "sub-{name}/eeg/{stem}_electrodes.tsv"
TIED = "sub-inhtie/eeg/sub-inhtie"
EEG_JSON = "sub-{name}/eeg/{stem}_eeg.json"


def row(kind: str, name: str, write: Callable[[Place], object], expect: Served) -> Row:
    return Row(kind=kind, name=name, ending="_eeg.edf", write=write, expect=expect)


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


def _json(name: str, content: bytes | str, hz: float | None, *notes: str) -> Row:
    return row(
        "JSON sidecars",
        name,
        beside(signal=content),
        plain(entry={"power_line_frequency": hz}, attributes={"power_line_frequency": hz}, notes=notes),
    )


JSONS = [
    _json("jsonbom", '{"PowerLineFrequency": 50}'.encode("utf-8-sig"), 50.0),
    _json(
        "jsoncomma",
        '{"PowerLineFrequency": 50,}',
        None,
        f"{EEG_JSON}: the file is no JSON from line 1 on",
    ),
    _json("jsonlist", "[50]", None, f"{EEG_JSON}: the file holds no JSON object"),
    _json(
        "jsonnan",
        '{"PowerLineFrequency": NaN}',
        None,
        f"{EEG_JSON}: NaN is no finite number and counts as null",
    ),
    _json(
        "jsontext",
        '{"PowerLineFrequency": "60 Hz"}',
        None,
        f"{EEG_JSON}: its PowerLineFrequency is no frequency and is not used",
    ),
    _json("jsonna", '{"PowerLineFrequency": "n/a"}', None),
]

_AT = {"A": [1.0, 2.0, 3.0], "B": [4.0, 5.0, 6.0]}
_PLACES = "name\tx\ty\tz\nA\t1\t2\t3\nB\t4\t5\t6\n"


def _described(system: str, units: str = "mm") -> str:
    return f'{{"EEGCoordinateSystem": "{system}", "EEGCoordinateUnits": "{units}"}}'


def _placed(positions: object, system: str | None, units: str | None, *notes: str) -> Served:
    return plain(
        notes=notes,
        attributes={
            "electrode_positions": positions,
            "electrode_coordinate_system": system,
            "electrode_coordinate_units": units,
        },
    )


def _spaces(place: Place) -> None:
    beside()(place)
    place.put(f"{place.stem}_space-CapTrak_electrodes.tsv", _PLACES)
    place.put(f"{place.stem}_space-CapTrak_coordsystem.json", _described("CapTrak"))


def _two_spaces(place: Place) -> None:
    _spaces(place)
    place.put(f"{place.stem}_space-Aaa_electrodes.tsv", _PLACES.replace("1", "7"))


def _own_and_space(place: Place) -> None:
    _spaces(place)
    place.put("_electrodes.tsv", _PLACES.replace("1", "8"))


PLACES = [
    row(
        "electrodes",
        "electrodes",
        beside(electrodes=_PLACES, coordsystem=_described("CTF", "cm")),
        _placed(_AT, "CTF", "cm"),
    ),
    row(
        "electrodes",
        "electna",
        beside(electrodes="name\tx\ty\tz\nA\t1\t2\t3\nB\tn/a\tn/a\tn/a\nC\t1\t2\tup\n"),
        _placed({"A": [1.0, 2.0, 3.0]}, "", "", f"{ELECTRODES}: 1 row has a coordinate that is no number"),
    ),
    row(
        "electrodes",
        "electcols",
        beside(electrodes="name\tleft\tright\nA\t1\t2\n"),
        _placed(None, None, None, f"{ELECTRODES} has no name, x, y and z columns and is not used"),
    ),
    row("electrodes in a space", "electspace", _spaces, _placed(_AT, "CapTrak", "mm")),
    row("electrodes in a space", "electtwo", _two_spaces, _placed(_AT, "CapTrak", "mm")),
    row(
        "electrodes in a space",
        "electown",
        _own_and_space,
        _placed({"A": [8.0, 2.0, 3.0], "B": [4.0, 5.0, 6.0]}, "CapTrak", "mm"),
    ),
]


def _nearest(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put("/task-t_acq-none_events.tsv", events("9\t0\tfar"))
    place.put(f"/sub-{place.name}/sub-{place.name}_events.tsv", GO_TSV)
    place.put(f"/sub-{place.name}/sub-{place.name}_channels.tsv", channels("A\tEOG\tuV", "B"))
    place.put("_channels.tsv", channels("A\tECG\tuV", "B"))


def _chain(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put(f"/sub-{place.name}/sub-{place.name}_eeg.json", '{"PowerLineFrequency": 60}')
    place.put("_eeg.json", '{"PowerLineFrequency": 50}')


def _tie(place: Place) -> None:
    stem = f"sub-{place.name}_task-t_run-1"
    place.put(f"{stem}_eeg.edf", edf())
    place.put(f"sub-{place.name}_task-t_events.tsv", GO_TSV)
    place.put(f"sub-{place.name}_run-1_events.tsv", events("3\t0\tother"))


def _decoy(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put(f"sub-{place.name}_task-other_events.tsv", GO_TSV)
    place.put(f"sub-{place.name}_task-t_run-2_channels.tsv", channels("A\tEOG\tuV", "B"))
    place.put("_eeg_events.tsv", GO_TSV)


def _motion(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put("_motion.tsv", "1\t1\t1\n1\t1\t1\n")


INHERITANCE = [
    row(
        "inheritance",
        "inhnearest",
        _nearest,
        plain(events=GO, match=BOTH, types=("ECG", "EEG")),
    ),
    row(
        "inheritance",
        "inhchain",
        _chain,
        plain(entry={"power_line_frequency": 50.0}, attributes={"power_line_frequency": 50.0}),
    ),
    Row(
        kind="inheritance",
        name="inhtie",
        ending="_run-1_eeg.edf",
        write=_tie,
        expect=plain(
            events=((3.0, 0.0, "other", None),),
            notes=(f"{TIED}_run-1_events.tsv is used, though as well apply {TIED}_task-t_events.tsv",),
        ),
    ),
    row("inheritance", "inhdecoy", _decoy, plain()),
    row("tables of other kinds", "motion", _motion, plain()),
]


def _dangling(kind: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        place.put("_eeg.edf", edf())
        place.at(f"_{kind}.tsv").symlink_to("nowhere.tsv")

    return write


def _annexed(kind: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        place.put("_eeg.edf", edf())
        place.put(f"_{kind}.tsv", f"/annex/objects/SHA256E-s57--{'ab' * 32}.tsv\n")

    return write


MISSING = [
    row(
        "sidecars that are not there",
        "gonechannels",
        _dangling("channels"),
        plain(read_error=True, notes=(f"{CHANNELS} is not used, for its content is not here",)),
    ),
    row(
        "sidecars that are not there",
        "goneevents",
        _dangling("events"),
        plain(notes=(f"{EVENTS} is not used, for its content is not here",)),
    ),
    row(
        "sidecars that are not there",
        "annexchannels",
        _annexed("channels"),
        plain(read_error=True, notes=(f"{CHANNELS} is not used, for its content is not here",)),
    ),
    row(
        "sidecars that are not there",
        "annexevents",
        _annexed("events"),
        plain(notes=(f"{EVENTS} is not used, for its content is not here",)),
    ),
]

ROWS = [
    *ENCODINGS,
    *ONSETS,
    *COMMAS,
    *LABELS,
    *SHAPES,
    *UNUSABLE,
    *UNITS,
    *NAMES,
    *JSONS,
    *PLACES,
    *INHERITANCE,
    *MISSING,
]
