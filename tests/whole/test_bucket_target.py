"""The commands against a bucket: what is served is what a folder would serve, and nothing is sent twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command import Zarrmill
from fault_proxy import Fault
from s3_server import KEY_ID, SECRET, S3Place
from small_dataset import write_recording, write_root

INDEX = "kept/xx000042/zarr/index.json"


@pytest.fixture
def bucketed(zarrmill: Zarrmill, s3: S3Place) -> Zarrmill:
    return replace(zarrmill, settings={**zarrmill.settings, **s3.environment()})


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "xx000042"
    write_root(folder)
    for subject in ("01", "02", "03"):
        write_recording(folder, subject)
    return folder


def stores_sent(s3: S3Place) -> dict[str, set[str]]:
    """Names of the objects that were put, by subject, since the proxy last forgot."""
    sent: dict[str, set[str]] = {}
    for word, key in s3.proxy.asked:
        store, within, name = key.partition(".zarr/")
        if word == "PUT" and within:
            sent.setdefault(store.split("/")[3], set()).add(name)
    return sent


def test_the_commands_work_against_a_bucket_and_send_only_what_differs(
    bucketed: Zarrmill, s3: S3Place, dataset: Path
) -> None:
    target = f"s3://{s3.name}/kept"
    s3.proxy.faults = [Fault(kind="unavailable", share=0.05, seed=1)]
    first = bucketed.run("convert", dataset, "--target", target, "--json", "--verbose")
    assert (first.summary["stores"], first.summary["converted"]) == (3, 3)
    index = json.loads(s3.get(INDEX))
    assert index["s3_uri"] == f"s3://{s3.name}/kept/xx000042/zarr/"
    assert (index["s3_anonymous"], index["s3_region"]) == (False, "us-east-2")
    assert json.loads(s3.get("kept/zarr-catalog.json"))["count"] == 1
    roots = [key for key in s3.keys("kept/xx000042/") if key.endswith(".zarr/zarr.json")]
    marks = [json.loads(s3.get(root))["attributes"]["publish_id"] for root in roots]
    assert len(set(marks)) == 3, "every publish has a mark of its own"

    s3.proxy.forget()
    again = bucketed.run("convert", dataset, "--to", target, "--json")
    assert (again.summary["changed"], again.summary["run_number"]) == (False, None)
    assert not {"PUT", "POST", "DELETE", "COPY"} & s3.proxy.counts().keys(), "nothing to do writes nothing"

    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{s3.name}/*"}
    s3.plain.put_bucket_policy(Bucket=s3.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    write_recording(dataset, "01", seed=3)
    s3.plain.delete_object(Bucket=s3.name, Key=roots[2])
    s3.proxy.forget()
    full = bucketed.run("convert", dataset, "--to", target, "--mode", "full", "--json")
    assert full.summary["converted"] == 3
    assert json.loads(s3.get(INDEX))["s3_anonymous"], "nobody said so: an unsigned request saw it"
    sent = stores_sent(s3)
    # another file of the source changed, so every root names another commit; what is equal is not sent
    assert (sent["sub-02"], sent["sub-03"]) == ({"zarr.json"}, {"zarr.json"})
    assert any("/c/" in name for name in sent["sub-01"])
    assert all(s3.get(root) for root in roots)

    status = bucketed.run("status", "--to", target)
    assert "xx000042" in status.stdout
    why = bucketed.run("why", "xx000042", index["stores"][0]["path"], "--to", target)
    said = "".join(one.stdout + one.stderr for one in (first, again, full, status, why))
    assert SECRET not in said
    assert KEY_ID not in said


def test_a_wrong_key_or_bucket_ends_the_command_before_anything_is_converted(
    bucketed: Zarrmill, s3: S3Place, dataset: Path
) -> None:
    s3.proxy.faults = [Fault(kind="denied", method="PUT")]
    refused = bucketed.run("convert", dataset, "--to", f"s3://{s3.name}", code=2)
    assert "cannot be used" in refused.stderr
    missing = bucketed.run("convert", dataset, "--to", "s3://bucket-that-is-not", code=2)
    assert "no such bucket" in missing.stderr
    assert SECRET not in refused.stderr + missing.stderr
    assert s3.keys() == []
