"""What the demonstration says of itself: description, README, participants and the sidecars' constant parts."""

from __future__ import annotations

from typing import Any

from cli.demo.signals import MAINS_HZ

__all__ = [
    "CHANGES", "DESCRIPTION", "EEG", "EMG", "EVENT_COLUMNS", "HEAD_COORDINATES", "IEEG", "MEG", "MNI_COORDINATES",
    "MUSCLES", "PARTICIPANTS", "PARTICIPANT_COLUMNS", "README", "SCALP_COORDINATES",
]  # fmt: skip

DESCRIPTION: dict[str, Any] = {
    "Name": "Rest, tones and grips: a made-up demonstration",
    "BIDSVersion": "1.10.0",
    "HEDVersion": "8.3.0",
    "DatasetType": "raw",
    "License": "CC0",
    "Authors": ["Ada Made-Up", "Ben Invented"],
    "Acknowledgements": "Nobody was recorded for this dataset.",
    "HowToAcknowledge": "No need to: every sample is made up.",
    "DatasetDOI": "doi:10.0000/zarrmill.demo",
}

README = """Rest, tones and grips: a made-up demonstration

Every sample in this dataset was computed; nobody was recorded. It is small, but has what real datasets have: seven
people, EEG in three formats, MEG in two files, intracranial EEG, EMG, events, electrodes, and sidecars that are
inherited from the root.

Four things in it are wrong on purpose:

* sub-07 task-rest: the EDF file was cut off while it was copied.
* sub-03 task-oddball: the .set holds epochs, not a continuous recording.
* sub-01 task-rest: there is an .edf and a .set of the same name, so both claim one store.
* sub-01 task-oddball: one event has no onset (n/a).

Try it: change a unit in a channels.tsv, or remove a recording, and convert again. Only what this touches is made anew.
"""

CHANGES = """1.0.0 2021-03-04
  - First version.
"""

PARTICIPANTS: list[tuple[str, int, str, str]] = [
    ("sub-01", 27, "F", "right"),
    ("sub-02", 31, "M", "right"),
    ("sub-03", 24, "F", "left"),
    ("sub-04", 45, "M", "right"),
    ("sub-05", 38, "F", "right"),
    ("sub-06", 29, "M", "right"),
    ("sub-07", 33, "F", "right"),
]

PARTICIPANT_COLUMNS = {
    "age": {"Description": "Age at the recording", "Units": "year"},
    "sex": {"Description": "Sex", "Levels": {"F": "female", "M": "male"}},
    "hand": {"Description": "Preferred hand", "Levels": {"left": "left", "right": "right"}},
}

_DEVICE = {"Manufacturer": "n/a", "PowerLineFrequency": MAINS_HZ, "SoftwareFilters": "n/a"}

EEG: dict[str, Any] = _DEVICE | {
    "EEGReference": "average of the mastoids",
    "EEGGround": "AFz",
    "EEGPlacementScheme": "10-20",
    "HardwareFilters": {"high pass": {"cutoff (Hz)": 0.1}},
}

MEG: dict[str, Any] = _DEVICE | {
    "TaskName": "rest",
    "DewarPosition": "upright",
    "DigitizedLandmarks": False,
    "DigitizedHeadPoints": False,
    "ContinuousHeadLocalization": False,
    "RecordingType": "continuous",
    "MEGChannelCount": 30,
    "TriggerChannelCount": 1,
}

IEEG: dict[str, Any] = _DEVICE | {
    "TaskName": "rest",
    "iEEGReference": "scalp electrode at Cz",
    "iEEGElectrodeGroups": "LA: left amygdala, LH: left hippocampus",
    "RecordingType": "continuous",
    "SEEGChannelCount": 12,
}

EMG: dict[str, Any] = _DEVICE | {
    "TaskName": "grip",
    "EMGPlacementScheme": "Measured",
    "EMGPlacementSchemeDescription": "Bipolar pairs over the bellies of four muscles of the right forearm.",
    "EMGReference": "olecranon",
    "EMGGround": "wrist",
    "RecordingType": "continuous",
    "EMGChannelCount": 4,
}

MUSCLES = ["flexor carpi radialis", "flexor digitorum superficialis", "extensor carpi radialis", "extensor digitorum"]

EVENT_COLUMNS: dict[str, Any] = {
    "onset": {"Description": "When the tone began", "Units": "s"},
    "duration": {"Description": "How long the tone lasted", "Units": "s"},
    "trial_type": {
        "Description": "Kind of tone",
        "Levels": {
            "standard": "1000 Hz, frequent",
            "target": "1500 Hz, rare",
            "instruction": "a spoken word, not timed",
        },
        "HED": {
            "standard": "Sensory-event, Auditory-presentation, Tone",
            "target": "Sensory-event, Auditory-presentation, (Tone, Target)",
            "instruction": "Sensory-event, Auditory-presentation, Instructional",
        },
    },
    "response_time": {"Description": "Time from the tone to the button", "Units": "s"},
}

SCALP_COORDINATES = {
    "EEGCoordinateSystem": "CapTrak",
    "EEGCoordinateUnits": "mm",
    "EEGCoordinateSystemDescription": "RAS: x through the ears, y through the nose. Places of the 10-20 system on a sphere.",
}

HEAD_COORDINATES = {
    "MEGCoordinateSystem": "NeuromagElektaMEGIN",
    "MEGCoordinateUnits": "m",
    "MEGCoordinateSystemDescription": "RAS: x through the ears, y through the nose.",
}

MNI_COORDINATES = {
    "iEEGCoordinateSystem": "MNI152NLin2009cAsym",
    "iEEGCoordinateUnits": "mm",
    "iEEGCoordinateProcessingDescription": "made up",
}
