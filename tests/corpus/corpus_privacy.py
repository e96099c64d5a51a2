"""Recordings that say whose they are, where they were and what they were called, in every field that can."""

from __future__ import annotations

import warnings
from datetime import date, datetime

import numpy as np
from corpus_brainvision import bv
from corpus_eeglab import eeg
from corpus_meg import meg
from corpus_row import Place, Row, Served, edf, plain, signal, steps
from reference_signal import SourceSignal
from small_files import brainvision, eeglab, mefd

WORDS = (
    "Quillfeather",
    "Brambleton",
    "MRN77013355",
    "Examiner-Okonjo",
    "secretclinic",
    "ward9ward",
    "original_visit3",
    "workstation-ruth",
)
"""Names of a patient, an examiner, a clinic, a machine and a file; each stands in at least one recording."""

_UV = signal(("E1", "E2"))


def _edf(place: Place) -> None:
    data = bytearray(edf())
    data[8:88] = b"MRN77013355 F 02-MAY-1951 Quillfeather_Brambleton".ljust(80)
    data[88:168] = b"Startdate 02-MAR-2002 secretclinic Examiner-Okonjo workstation-ruth".ljust(80)
    place.put("_eeg.edf", bytes(data))


def _edf_plus(place: Place) -> None:
    import pyedflib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = pyedflib.EdfWriter(str(place.at("_eeg.edf")), 2, file_type=pyedflib.FILETYPE_EDFPLUS)
        writer.setHeader(
            {
                "patientname": "Quillfeather",
                "patientcode": "MRN77013355",
                "birthdate": date(1951, 5, 2),
                "sex": 0,
                "patient_additional": "ward9ward",
                "technician": "Examiner-Okonjo",
                "equipment": "workstation-ruth",
                "admincode": "secretclinic",
                "recording_additional": "Brambleton",
                "startdate": datetime(2002, 3, 2, 1, 2, 3),  # noqa: DTZ001 - EDF knows no zone
            }
        )
        for i, label in enumerate(("A", "B")):
            writer.setSignalHeader(
                i,
                {
                    "label": label,
                    "dimension": "uV",
                    "sample_frequency": 100,
                    "physical_min": -3276.8,
                    "physical_max": 3276.7,
                    "digital_min": -32768,
                    "digital_max": 32767,
                    "transducer": "ward9ward",
                    "prefilter": "HP:0.1Hz",
                },
            )
        writer.writeSamples([row.astype(np.int32) for row in steps(signal())], digital=True)
        writer.writeAnnotation(1.0, -1, "Quillfeather blinks")
        writer.close()


def _fif(place: Place) -> None:
    import mne

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mne.create_info(["MEG0000", "MEG0001"], 100.0, "mag")
        info["subject_info"] = {
            "id": 77013355,
            "his_id": "MRN77013355",
            "last_name": "Quillfeather",
            "first_name": "Brambleton",
            "birthday": date(1951, 5, 2),
            "sex": 2,
            "hand": 1,
        }
        info["experimenter"] = "Examiner-Okonjo"
        info["description"] = "secretclinic ward9ward"
        info["device_info"] = {"type": "x", "model": "x", "serial": "x", "site": "secretclinic"}
        info["proj_name"] = "original_visit3"
        raw = mne.io.RawArray(signal().data * 1e-15, info, verbose="ERROR")
        raw.set_annotations(mne.Annotations([1.0], [0.1], ["Quillfeather blinks"]))
        raw.save(place.at("_meg.fif"), verbose="ERROR")


def _brainvision(place: Place) -> None:
    path = brainvision(place.folder, f"{place.stem}_eeg", _UV.data, 100.0)
    text = path.read_text(encoding="utf-8")
    text = text.replace(f"DataFile={place.stem}_eeg.eeg", "DataFile=/home/Quillfeather/original_visit3.eeg")
    text = text.replace(f"MarkerFile={place.stem}_eeg.vmrk", r"MarkerFile=C:\secretclinic\original_visit3.vmrk")
    path.write_text(
        f"{text}\n[Comment]\nPatient: Quillfeather Brambleton, ward9ward, workstation-ruth\n", encoding="utf-8"
    )
    marker = place.at("_eeg.vmrk")
    marker.write_text(marker.read_text(encoding="utf-8") + "Mk2=Comment,Quillfeather blinks,20,1,0\n", encoding="utf-8")


def _eeglab(place: Place) -> None:
    from scipy.io import loadmat, savemat

    path = eeglab(place.at("_eeg.set"), _UV.data, 100.0, fdt=True)
    known = loadmat(path, simplify_cells=True)["EEG"]
    known["chanlocs"] = np.array([(f"E{i + 1}",) for i in range(2)], dtype=[("labels", object)])
    event = np.empty(1, dtype=[("type", object), ("latency", object)])
    event[0] = ("Quillfeather blinks", 20.0)
    told = {
        "setname": "Quillfeather",
        "data": "original_visit3.fdt",
        "filename": "original_visit3.set",
        "filepath": "/home/Quillfeather/secretclinic",
        "datfile": "original_visit3.fdt",
        "subject": "MRN77013355",
        "group": "ward9ward",
        "condition": "Brambleton",
        "session": "Examiner-Okonjo",
        "comments": "recorded at workstation-ruth",
        "history": "pop_loadset('/home/Quillfeather/original_visit3.set')",
        "etc": {"amica": "/home/Quillfeather"},
        "event": event,
    }
    savemat(path, {"EEG": {**known, **told}})


def _mef(place: Place) -> None:
    mefd(place.at("_ieeg.mefd"), steps(signal(("ch01", "ch02"))), 100.0, patient="Quillfeather")


def _sidecars(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put(
        "_eeg.json",
        '{"PowerLineFrequency": 50, "InstitutionName": "secretclinic", "DeviceSerialNumber": "workstation-ruth"}',
    )
    place.put("_channels.tsv", "name\ttype\tunits\tdescription\nA\tEEG\tuV\tward9ward\nB\tEEG\tuV\tQuillfeather\n")
    place.put("_scans.tsv", "filename\tacq_time\nA\tQuillfeather\n")


def _row(name: str, ending: str, write: object, expect: Served) -> Row:
    return Row(kind=f"people in {ending}", name=name, ending=ending, write=write, expect=expect)  # type: ignore[arg-type]  # as there


_MEF = plain(
    signals={"ieeg_100hz": SourceSignal(("ch01", "ch02"), 100.0, signal().data * 10, ("uV", "uV"))},
    units=("V", "V"),
)

ROWS = [
    _row("whoedf", "_eeg.edf", _edf, plain()),
    _row("whoedfplus", "_eeg.edf", _edf_plus, plain()),
    _row("whofif", "_meg.fif", _fif, meg()),
    _row("whobv", "_eeg.vhdr", _brainvision, bv()),
    _row("whoset", "_eeg.set", _eeglab, eeg()),
    _row("whomef", "_ieeg.mefd", _mef, _MEF),
    _row(
        "whosidecars",
        "_eeg.edf",
        _sidecars,
        plain(match=(2, 0, 0, 0), entry={"power_line_frequency": 50.0}, attributes={"power_line_frequency": 50.0}),
    ),
]
