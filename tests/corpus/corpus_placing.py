"""JSON sidecars, electrodes, which sidecar applies, and sidecars that are not there."""

from __future__ import annotations

from collections.abc import Callable

from corpus_beside import BOTH, CHANNELS, EEG_JSON, ELECTRODES, EVENTS, GO, GO_TSV, TIED, row
from corpus_row import Place, Row, Served, beside, channels, edf, events, plain


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
