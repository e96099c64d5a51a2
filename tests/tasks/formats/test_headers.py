"""Every format's own header reader on real files, content that is not there, and the names that readers insist on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ctf_files import continuous_ctf
from header_failure import failure
from small_files import brainvision, edf_bytes, eeglab, mefd, tones

from contract.codes import FailureCode
from tasks.formats import load
from tasks.formats.content import is_pointer, require_content
from tasks.formats.protocol import Route

REAL = [
    ("edf", "edf/chtypes_edf.edf", 42, 1000, 200.0, Route.STREAMED),
    ("edf", "edf/test_reduced.edf", 139, 3072, 512.0, Route.STREAMED),
    ("edf", "edf/test_utf8_annotations.edf", 11, 2000, 200.0, Route.STREAMED),
    ("bdf", "bdf/multiple_annotation_chans.bdf", 19, 30875, 125.0, Route.STREAMED),
    ("brainvision", "brainvision/test_CA_208.vhdr", 88, 4025, 1000.0, Route.STREAMED),
    ("eeglab", "eeglab/test_raw.set", 32, 30504, 128.0, Route.STREAMED),
    ("eeglab", "eeglab/test_raw_h5.set", 32, 30504, 128.0, Route.STREAMED),
    ("fif", "fif/mgh70_raw.fif", 70, 5001, 5000.0, Route.STREAMED),
    ("kit", "kit/MQKIT_125_2sec.con", 192, 2000, 1000.0, Route.STREAMED),
    ("bti", "bti/4Dsim", 279, 458, 1017.7777857820929, Route.STREAMED),
]


@pytest.mark.parametrize("case", REAL, ids=[r[1] for r in REAL])
def test_a_real_header_is_read_as_its_reader_reads_it(
    recordings: Path, tmp_path: Path, case: tuple[str, str, int, int, float, Route]
) -> None:
    name, path, channels, samples, rate, route = case
    one = load()[name]
    header = one.header(recordings / path)
    assert (header.n_channels, header.n_samples, header.rate_hz) == (channels, samples, pytest.approx(rate))
    assert one.route(header) is route
    assert one.read_target(recordings / path, header, tmp_path) == recordings / path


def test_every_format_that_discovery_names_is_installed() -> None:
    assert set(load()) == {"bdf", "brainvision", "bti", "ctf", "edf", "eeglab", "fif", "kit", "mef3", "vneurotk"}


class TestContent:
    @pytest.mark.parametrize(
        "data",
        [
            b"/annex/objects/MD5E-s1--0.edf\n",
            b"../../.git/annex/objects/a/b/k/k",
            b"version https://git-lfs.github.com/spec/v1\n",
        ],
    )
    def test_a_pointer_is_missing_content(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "x.edf"
        path.write_bytes(data)
        assert is_pointer(data)
        assert failure(require_content, path) is FailureCode.ANNEX_OBJECT_MISSING
        assert failure(load()["edf"].header, path) is FailureCode.ANNEX_OBJECT_MISSING

    def test_a_dangling_link_is_missing_content_and_nothing_at_all_a_read_error(self, tmp_path: Path) -> None:
        (tmp_path / "x").symlink_to("nowhere")
        assert failure(require_content, tmp_path / "x") is FailureCode.ANNEX_OBJECT_MISSING
        assert failure(require_content, tmp_path / "y") is FailureCode.FILE_READ_ERROR

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    @pytest.mark.parametrize("name", ["edf", "eeglab", "fif"])
    def test_a_file_that_may_not_be_read_is_a_condition_of_the_machine(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "x"
        path.write_bytes(edf_bytes())
        path.chmod(0o000)
        tmp_path.chmod(0o755)  # the folders above stay as they are: the reader stands in this one already
        code = f"""
import sys; sys.path[:0] = {sys.path!r}
from pathlib import Path
from contract.errors import NotNow
from tasks.formats import load
one = load()[{name!r}]
import os; os.chdir({str(tmp_path)!r}); os.setgid(65534); os.setuid(65534)
try:
    one.header(Path("x"))
except NotNow as error:
    print(error.reason.value)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "infra_failure"


class TestNames:
    """Readers insist on names; they get links, and the source stays as it is."""

    def target(self, name: str, primary: Path, work: Path) -> Path:
        work.mkdir()
        return load()[name].read_target(primary, load()[name].header(primary), work)

    def test_folders_and_endings(self, recordings: Path, tmp_path: Path) -> None:
        mefd(tmp_path / "x.mefd", tones(1, 256, 256.0), 256.0).rename(tmp_path / "x.MEFD")
        assert self.target("mef3", tmp_path / "x.MEFD", tmp_path / "a").name == "x.mefd"
        dotted = tmp_path / "sub-01_task-v1.2_meg"
        shutil.copytree(recordings / "bti/4Dsim", dotted)
        assert "." not in self.target("bti", dotted, tmp_path / "b").name

    def test_a_renamed_ctf_folder_shows_its_files_under_its_own_name(self, recordings: Path, tmp_path: Path) -> None:
        folder = continuous_ctf(recordings, tmp_path / "old.ds").rename(tmp_path / "sub-01_meg.DS")
        target = self.target("ctf", folder, tmp_path / "work")
        assert target.name == "sub-01_meg.ds"
        assert {"sub-01_meg.res4", "sub-01_meg.meg4", "sub-01_meg.hc"} <= {path.name for path in target.iterdir()}

    def test_samples_of_another_spelling(self, tmp_path: Path) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 250.0, fdt=True)
        path.with_suffix(".fdt").rename(tmp_path / "X.FDT")
        target = self.target("eeglab", path, tmp_path / "a")
        assert target.with_suffix(".fdt").stat().st_size == 8000
        path = brainvision(tmp_path, "y", tones(3, 100, 100.0), 100.0)
        for ending in (".vhdr", ".eeg", ".vmrk"):
            (tmp_path / f"y{ending}").rename(tmp_path / f"y{ending.upper()}")
        target = self.target("brainvision", tmp_path / "y.VHDR", tmp_path / "b")
        assert sorted(p.name for p in target.parent.iterdir()) == ["y.eeg", "y.vhdr", "y.vmrk"]
