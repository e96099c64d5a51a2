"""The programs of a read recipe. Everything that is put into them is a number, or a text written as a literal of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from string import Template

__all__ = ["ProgramFacts", "python_s3", "python_zarr", "zarrita"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFacts:
    """What a program reads.

    Parameters
    ----------
    store_url, s3_store
        The store over HTTP and as ``bucket/key``, without a closing slash.
    inside
        The array's path in the store.
    rows, enclosing
        The asked rows, and the slice of rows that holds them.
    columns
        The slice of the last axis.
    is_view
        Whether the array has an axis of least and greatest values before the others.
    """

    store_url: str
    s3_store: str
    s3_region: str
    s3_anonymous: bool
    version_token: str
    inside: str
    rows: tuple[int, ...]
    enclosing: tuple[int, int]
    columns: tuple[int, int]
    is_view: bool
    scale: tuple[float, ...]
    offset: tuple[float, ...]


_PYTHON = Template("""\
# pip install "zarr>=3.1" $packages
import $module
import numpy as np
import zarr
from zarr.storage import FsspecStore

STORE = $store
$files


def version():
    return files.info($root)["ETag"]


while True:  # a store may be replaced while it is read: use only what was read between two equal versions
    before = version()
    array = zarr.open_array($opened, path=$inside, mode="r", zarr_format=3)
    digital = array[$part]
    if version() == before:
        break
$picked
scale = np.array($scale)[:, None]
offset = np.array($offset)[:, None]
physical = digital * scale + offset  # $axes
""")

_JAVASCRIPT = Template("""\
// npm install zarrita
import * as zarr from "zarrita";

const url = $store;
const token = $token; // keeps versions of the store apart in caches
const version = async () =>
  (await fetch(url + "/zarr.json", { method: "HEAD", cache: "no-store" })).headers.get("etag");

let before, digital;
do { // a store may be replaced while it is read: use only what was read between two equal versions
  before = await version();
  const store = new zarr.FetchStore(url + token);
  const array = await zarr.open.v3(zarr.root(store).resolve($inside), { kind: "array" });
  digital = await zarr.get(array, [$part]);
} while ((await version()) !== before);

const rows = $picked; // of what was read
const scale = $scale;
const offset = $offset;
const [height, width] = digital.shape.slice(-2);
const row = (start, i) =>
  Float64Array.from(digital.data.subarray(start, start + width), (value) => value * scale[i] + offset[i]);
$physical
""")


def python_zarr(facts: ProgramFacts) -> str:
    """Python that reads over HTTP; it leaves ``physical``."""
    return _python(
        facts,
        packages="fsspec aiohttp",
        module="fsspec",
        store=json.dumps(facts.store_url),
        files='files = fsspec.filesystem("http")',
        root='STORE + "/zarr.json"',
        opened="FsspecStore.from_url(STORE)",
    )


def python_s3(facts: ProgramFacts) -> str:
    """Python that reads over S3; it leaves ``physical``. Another service than that of AWS is named by AWS_ENDPOINT_URL."""
    options = f'{{"anon": {facts.s3_anonymous}, "client_kwargs": {{"region_name": {json.dumps(facts.s3_region)}}}}}'
    return _python(
        facts,
        packages="s3fs",
        module="s3fs",
        store=json.dumps(facts.s3_store),
        files=f"OPTIONS = {options}\nfiles = s3fs.S3FileSystem(**OPTIONS, use_listings_cache=False)",
        root='STORE + "/zarr.json"',
        opened='FsspecStore.from_url("s3://" + STORE, storage_options=OPTIONS)',
    )


def zarrita(facts: ProgramFacts) -> str:
    """JavaScript (an ES module) that leaves ``physical``: an array for each channel, of a view level two such lists."""
    first = facts.enclosing[0]
    part = [f"zarr.slice({start}, {end})" for start, end in (facts.enclosing, facts.columns)]
    plain = "const physical = rows.map((r, i) => row(r * width, i));"
    envelope = (
        "const physical = [0, height].map((k) => rows.map((r, i) => row((k + r) * width, i))); // least, greatest"
    )
    return _JAVASCRIPT.substitute(
        store=json.dumps(facts.store_url),
        token=json.dumps(f"?v={facts.version_token}"),
        inside=json.dumps(facts.inside),
        part=", ".join(["null", *part] if facts.is_view else part),
        picked=json.dumps([row - first for row in facts.rows]),
        scale=json.dumps(facts.scale),
        offset=json.dumps(facts.offset),
        physical=envelope if facts.is_view else plain,
    )


def _python(facts: ProgramFacts, **words: str) -> str:
    first, end = facts.enclosing
    part = [f"{first}:{end}", f"{facts.columns[0]}:{facts.columns[1]}"]
    picked = [row - first for row in facts.rows]
    before_rows = ":, " if facts.is_view else ""
    takes_all = picked == list(range(end - first))
    return _PYTHON.substitute(
        **words,
        inside=json.dumps(facts.inside),
        part=", ".join([":", *part] if facts.is_view else part),
        picked="" if takes_all else f"digital = digital[{before_rows}{picked}]  # the asked rows of those read",
        scale=json.dumps(facts.scale),
        offset=json.dumps(facts.offset),
        axes="least and greatest, channels, columns" if facts.is_view else "channels, samples",
    )
