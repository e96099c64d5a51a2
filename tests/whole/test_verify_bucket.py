"""The verify sweep over a bucket, and trouble on the way: it gives no verdict, and what was known stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Zarrmill
from fault_proxy import Fault
from s3_server import S3Place
from small_dataset import write_recording, write_root
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from db.catalog import catalog_rows
from flows.sweep_request import DatasetSwept, SweepRequest
from flows.verify_sweep import verify_sweep
from infra.database import engine as make_engine

ID = "xx000042"


def test_a_bucket_is_compared_by_range_and_trouble_gives_no_verdict(
    zarrmill: Zarrmill, s3: S3Place, engine: Engine, tmp_path: Path, servers: Any
) -> None:
    dataset = tmp_path / ID
    write_root(dataset)
    for subject in ("01", "02"):
        write_recording(dataset, subject)
    target = f"s3://{s3.name}/kept"
    replace(zarrmill, settings={**zarrmill.settings, **s3.environment()}).run("convert", dataset, "--to", target)
    settings = s3.settings(home=tmp_path / "home", scratch=tmp_path / "scratch", s3_tries=2)

    def sweep(**more: Any) -> DatasetSwept:
        (swept,) = verify_sweep(settings, engine, SweepRequest(dataset_id=ID, **more))
        return swept

    def catalog() -> str | None:
        with engine.connect() as c:
            return catalog_rows(c, target=target)[0].zarr_verify_status

    s3.proxy.forget()
    clean = sweep()
    assert (clean.status, clean.verified, clean.trouble) == ("verified", 2, None), clean
    assert not {"PUT", "POST", "DELETE", "COPY"} & s3.proxy.counts().keys(), "a sweep only reads"
    assert any("range" in {name.lower() for name in headers} for headers in s3.proxy.seen_headers)

    for fault in (
        Fault(kind="unavailable", method="GET", pattern=r"/0/c/"),
        Fault(kind="denied", pattern=r"list-type"),
    ):
        s3.proxy.faults = [fault]
        swept = sweep(every=True)
        assert (swept.status, {one.status for one in swept.stores} - {None}) == (None, set()), fault
        assert swept.trouble
        assert fault.struck
        assert catalog() == "verified", "what was known stands"
    s3.proxy.forget()

    _database_away(engine, servers, s3, lambda: sweep(every=True))
    assert catalog() == "verified"

    s3.proxy.forget()
    assert verify_sweep(settings, engine, SweepRequest()) == (), "what stands is as it was left"
    assert sum(s3.proxy.counts().values()) <= 3, "a listing and the index"

    (shard,) = [key for key in s3.keys(f"kept/{ID}/zarr/sub-02") if "/0/c/" in key]
    data = s3.get(shard)
    s3.put(shard, data[:100] + bytes([data[100] ^ 1]) + data[101:])
    (swept,) = verify_sweep(settings, engine, SweepRequest())
    assert [one.status for one in swept.stores] == ["failed"], "only the store whose etags are others is compared"
    assert (swept.status, swept.verified, swept.failed, catalog()) == ("failed", 1, 1, "failed")
    assert "object_differs" in {example["check"] for example in swept.examples}
    assert not list(settings.scratch.iterdir()), "scratch is empty on every path"


def _database_away(engine: Engine, servers: Any, s3: S3Place, sweep: Any) -> None:
    """The database lets nobody in from the first shard that is read, until the sweep has ended."""
    name = engine.url.database
    server = servers.get(18)
    admin = make_engine(server.url("postgres")).execution_options(isolation_level="AUTOCOMMIT")

    def shut() -> None:
        with admin.connect() as c:
            c.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            c.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), {"name": name}
            )

    s3.proxy.faults = [Fault(method="GET", pattern=r"/0/c/", times=1, before=shut)]
    with pytest.raises(OperationalError):
        sweep()
    with admin.connect() as c:
        c.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
    admin.dispose()
    s3.proxy.forget()
