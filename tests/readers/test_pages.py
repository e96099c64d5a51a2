"""Every program on the pages for readers runs against a served dataset as it stands there, and gives what is served."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import zarr
from demo_server import DATASET, GROUP, ODDBALL, REST, Demo
from open_store import served
from product import ROOT
from s3_server import KEY_ID, SECRET, S3Server

PAGES = sorted((ROOT / "docs" / "read").glob("*.md"))
ARCHIVE = "http://127.0.0.1:8321"
BUCKET = "zarr-example"


def programs(page: Path, language: str) -> str:
    """The programs of a page in this language, one behind the other, as somebody reads them."""
    return "\n".join(
        re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )


def run(program: str, demo: Demo, folder: Path, s3: S3Server, *, show: str) -> Any:
    """Run Python with the demo's address in place of the page's; the value of the expression ``show``."""
    environment = {
        "AWS_ENDPOINT_URL": s3.url,
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    ending = f"\nimport json as _json\nprint(_json.dumps({show}))\n"
    ran = subprocess.run(
        [sys.executable, "-c", program.replace(ARCHIVE, demo.url) + ending],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def bucket(demo: Demo, s3_server: S3Server) -> S3Server:
    """The demo's dataset in a bucket of the name that the pages use."""
    client = s3_server.plain_client
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-east-2"})
    for path in demo.served.base.rglob("*"):
        if path.is_file():
            key = path.relative_to(demo.served.target).as_posix()
            client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes(), ACL="public-read")
    return s3_server


def test_the_pages_for_readers_have_programs_and_no_other_language() -> None:
    languages = {
        word for page in PAGES for word in re.findall(r"^```(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert languages == {"python", "js", "json"}
    assert {page.stem for page in PAGES if programs(page, "python")} == {"access", "guide"}
    assert {page.stem for page in PAGES if programs(page, "js")} == {"guide"}
    for page in PAGES:
        for text in re.findall(r"^```json\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            json.loads(text)


def test_the_page_about_access_leads_to_a_store(demo: Demo, bucket: S3Server, tmp_path: Path) -> None:
    show = "[store_url, index['store_count'], s3_window.tolist(), s3_group.attrs['rate']]"
    url, count, window, rate = run(programs(ROOT / "docs/read/access.md", "python"), demo, tmp_path, bucket, show=show)
    first = demo.served.index["stores"][0]
    assert (url, count, rate) == (f"{demo.base}{first['zarr']}", 2, 250.0)
    digital = zarr.open_array(demo.served.base / first["zarr"], path=f"{GROUP}/0", mode="r")
    assert np.array_equal(np.array(window), digital[:, :1000])


def test_the_guide_reads_windows_views_events_and_examples(demo: Demo, bucket: S3Server, tmp_path: Path) -> None:
    show = (
        "[window.tolist(), envelope.tolist(), events, len(windows), "
        "{**example, 'signal': example['signal'].tolist()}, sorted({type(w['signal'].dtype).__name__ for w in [example]})]"
    )
    guide = programs(ROOT / "docs/read/guide.md", "python")
    window, envelope, events, count, example, kinds = run(guide, demo, tmp_path, bucket, show=show)
    signal = served(demo.served.store(ODDBALL), GROUP)
    assert np.array_equal(np.array(window), signal.physical[:, :1000])
    views = zarr.open_group(demo.served.store(ODDBALL), mode="r")[GROUP]
    level = max(number for number in views.attrs["view_levels"] if 30 * 250 / 4**number >= 500)
    factors = views["0"].attrs
    physical = views[f"view/{level}"][:] * np.array(factors["scale"])[:, None] + np.array(factors["offset"])[:, None]
    assert np.array_equal(np.array(envelope), physical[:, :, : int(30 * 250 / 4**level)])

    published = duckdb.read_parquet(str(demo.served.base / "events.parquet"))
    targets = published.filter("trial_type = 'target' AND sample_index IS NOT NULL").fetchall()
    assert len(events) == len(targets) > 50
    assert count == len(targets) - 1, "the last event of one recording has no 3 s behind it"
    onset = example["sample_index"]
    assert np.array_equal(np.array(example["signal"], "f4"), signal.physical[:, onset - 250 : onset + 750].astype("f4"))
    assert kinds == ["Float32DType"]
    provenance = example["provenance"]
    assert (provenance["dataset_id"], provenance["license"], provenance["recording"]) == (DATASET, "CC0", ODDBALL)
    assert provenance["source_commit"] == demo.served.index["source_commit"]
    assert provenance["rate_hz"] == 250.0
    assert provenance["source_rate_hz"] == 500.0


def test_the_guide_reads_in_a_browser_language_too(demo: Demo, node: Callable[[str], str]) -> None:
    program = programs(ROOT / "docs/read/guide.md", "js").replace(ARCHIVE, demo.url)
    told = json.loads(node(program + "console.log(JSON.stringify(physical.map((one) => [...one])));"))
    expected = served(demo.served.store(ODDBALL), GROUP).physical[:, :1000].astype("f4")
    assert np.array_equal(np.array(told, "f4"), expected)
    assert demo.served.lists()[REST] == "served"
