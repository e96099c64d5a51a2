"""The nodes of a Zarr store as biosigIO writes them: what it may ask of zarr, with zarr's bytes.

zarr is made for stores of any kind: each chunk, document and folder is a task of an event loop, each document is written
anew for every change, and each chunk beside its place and then renamed. In a store of a few seconds that took twice as long
as to read, resample, quantise and compress its samples. Here chunks go straight to their files, in the calling thread, and
documents are kept until they are complete. What a document says of an array is zarr's own, asked of it once for each kind.

Only what biosigIO asks for is here. Anything else raises ``AnotherRelease``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tasks.convert.documents import METADATA, ROOT, Documents

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from numpy.typing import NDArray

    Encoder = Callable[[NDArray[Any]], bytes]

__all__ = ["AnotherRelease", "StoreFolder", "Zarr", "array_document", "known_kinds"]

_NOTHING = 2**64 - 1
"""Place and length of a chunk that a shard's index does not hold."""
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


class AnotherRelease(RuntimeError):
    """biosigIO or zarr goes another way than the release that this was written for; nothing that it asks for is guessed."""


class _Known:
    """An object of which only the names that it has may be asked."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AnotherRelease(f"biosigIO asks zarr for {name!r} here")


class StoreFolder(_Known):
    """A new folder for one store; ``documents`` are those of its nodes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.documents = Documents()


class Zarr(_Known):
    """In the place of zarr's own module; ``stores`` are those that were made through it."""

    def __init__(self) -> None:
        self.storage = _Storage()
        self.stores: list[StoreFolder] = []

    def create_group(self, *, store: StoreFolder, overwrite: bool, **more: Any) -> _Group:
        """The root of ``store``, which is new afterwards."""
        _refuse("a root", more, known=overwrite is True and isinstance(store, StoreFolder))
        shutil.rmtree(store.path, ignore_errors=True)
        self.stores.append(store)
        return _Group(store, ROOT)


class _Storage(_Known):
    LocalStore = StoreFolder


class _Attributes(_Known):
    def __init__(self, documents: Documents, node: str) -> None:
        self._documents, self._node = documents, node

    def update(self, values: Mapping[str, Any]) -> None:
        # what a document can hold, and none of the caller's own lists
        held = json.loads(json.dumps(values, allow_nan=False))
        self._documents.edit(self._node, lambda own: own.update(held))

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})


class _Group(_Known):
    def __init__(self, store: StoreFolder, node: str) -> None:
        self._store, self._node = store, node
        store.documents.put(node, _group_document())
        self.attrs = _Attributes(store.documents, node)

    def create_group(self, name: str, **more: Any) -> _Group:
        _refuse("a group", more, known=True)
        return _Group(self._store, self._child(name))

    def create_array(
        self,
        name: str,
        *,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        dtype: Any,
        shards: tuple[int, ...] | None = None,
        compressors: Any = "auto",
        **more: Any,
    ) -> _Array:
        outer = chunks if shards is None else shards
        kind = np.dtype(dtype)
        whole = len(shape) == len(chunks) == len(outer) and shape[:-1] == chunks[:-1] == outer[:-1]
        _refuse("an array", more, known=whole and kind.kind in "if" and kind == kind.newbyteorder("<"))
        document = array_document(shape=shape, chunks=chunks, shards=shards, dtype=dtype, compressors=compressors)
        return _Array(self._store, self._child(name), kind, document)

    def _child(self, name: str) -> str:
        child = f"{self._node}/{name}" if self._node else name
        _refuse("a node", {}, known=bool(name) and not set(name) & {"/", "\0"} and child not in self._store.documents)
        return child


class _Array(_Known):
    """An array whose chunks divide its last axis only."""

    def __init__(self, store: StoreFolder, node: str, dtype: np.dtype[Any], document: dict[str, Any]) -> None:
        store.documents.put(node, document)
        self.attrs = _Attributes(store.documents, node)
        self._folder = os.path.join(store.path, node, "c", *["0"] * (len(document["shape"]) - 1))  # noqa: PTH118 - as in documents.py
        self._dtype, self._document = dtype, document

    def __setitem__(self, where: slice, data: NDArray[Any]) -> None:
        """Write all samples; of the chunks, as zarr does, those that hold anything but zeros."""
        document = self._document
        same = where == slice(None) and data.shape == tuple(document["shape"]) and data.dtype == self._dtype
        _refuse("samples", {}, known=same)
        if not data.size:
            return
        (length,) = document["chunk_grid"]["configuration"]["chunk_shape"][-1:]
        first = document["codecs"][0]
        sharded = first["configuration"] if first["name"] == "sharding_indexed" else None
        encode = _encoder(document["codecs"] if sharded is None else sharded["codecs"])
        for number, start in enumerate(range(0, data.shape[-1], length)):
            if sharded is None:
                parts = _parts(data, start, length, length, encode)
            else:
                parts = _shard(_parts(data, start, length, sharded["chunk_shape"][-1], encode))
            self._write(str(number), parts)

    def _write(self, name: str, parts: Iterator[bytes]) -> None:
        """Write one object, unless it has no content; whoever makes ``parts`` holds one of them at a time."""
        content = next((part for part in parts if part), None)
        if content is None:
            return
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 - as in documents.py
        with open(os.path.join(self._folder, name), "wb") as file:  # noqa: PTH118, PTH123 - as in documents.py
            file.write(content)
            file.writelines(parts)


def _parts(data: NDArray[Any], start: int, length: int, step: int, encode: Encoder) -> Iterator[bytes]:
    """The chunks between ``start`` and ``start + length`` of the last axis, encoded; empty for one of zeros only.

    The last one is filled up with zeros.
    """
    for place in range(start, start + length, step):
        samples = data[..., place : place + step]
        if not _bits(samples).any():
            yield b""
            continue
        missing = step - samples.shape[-1]
        if missing:
            chunk = np.zeros((*samples.shape[:-1], step), data.dtype)
            chunk[..., :-missing] = samples
        else:
            chunk = np.ascontiguousarray(samples)
        yield encode(chunk.reshape(-1).view("u1"))


def _bits(samples: NDArray[Any]) -> NDArray[Any]:
    """The samples as whole numbers; -0.0 is none of zarr's zeros."""
    return samples if samples.dtype.kind == "i" else samples.view(f"u{samples.dtype.itemsize}")


def _shard(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """One shard: its chunks, then where each stands, and a checksum of that; nothing when all are empty."""
    import google_crc32c

    places, end = [], 0
    for chunk in chunks:
        places.append((end, len(chunk)) if chunk else (_NOTHING, _NOTHING))
        end += len(chunk)
        yield chunk
    if end:
        index = np.array(places, "<u8").tobytes()
        yield index
        yield np.array([google_crc32c.value(index)], "<u4").tobytes()


def _encoder(codecs: list[dict[str, Any]]) -> Encoder:
    """What encodes a chunk as ``codecs`` of a document say."""
    import numcodecs  # type: ignore[import-untyped]  # it has no annotations

    serializer, compressor = codecs
    options = dict(compressor["configuration"])
    if serializer != _LITTLE:
        raise AnotherRelease(f"zarr writes numbers by {serializer} here")
    if compressor["name"] == "blosc":
        codec = numcodecs.Blosc(**{**options, "shuffle": _SHUFFLES[options["shuffle"]]})
    elif compressor["name"] == "zstd":
        codec = numcodecs.Zstd(**options)
    else:
        raise AnotherRelease(f"zarr compresses by {compressor} here")
    encode: Encoder = codec.encode
    return encode


_KINDS: dict[tuple[str, int, bool, str], str] = {}
"""zarr's document of an array of one sample, by data type, axes, whether there are shards, and compressors."""
_GROUP: list[str] = []


def known_kinds() -> None:
    """Ask zarr for the documents of every kind of node that biosigIO writes; later they are at hand."""
    from zarr.codecs import BloscCodec

    blosc = [BloscCodec(cname="zstd", clevel=5)]
    _group_document()
    array_document(shape=(1, 1), chunks=(1, 1), shards=(1, 1), dtype="int16", compressors=blosc)
    array_document(shape=(2, 1, 1), chunks=(2, 1, 1), shards=None, dtype="int16", compressors=blosc)
    for dtype in ("float64", "int32"):
        array_document(shape=(1,), chunks=(1,), shards=None, dtype=dtype, compressors="auto")


def array_document(
    *, shape: tuple[int, ...], chunks: tuple[int, ...], shards: tuple[int, ...] | None, dtype: Any, compressors: Any
) -> dict[str, Any]:
    """Zarr's own document of a new array."""
    outer = chunks if shards is None else shards
    if 0 in (*shape, *outer) or any(most % least for most, least in zip(outer, chunks, strict=True)):
        # zarr has its own mind about these, and errors of its own
        return _made(shape=shape, chunks=chunks, shards=shards, dtype=np.dtype(dtype), compressors=compressors)
    kind = (np.dtype(dtype).str, len(shape), shards is not None, repr(compressors))
    if kind not in _KINDS:
        ones = (1,) * len(shape)
        made = _made(
            shape=ones,
            chunks=ones,
            shards=None if shards is None else ones,
            dtype=np.dtype(dtype),
            compressors=compressors,
        )
        _KINDS[kind] = json.dumps(made)
    document: dict[str, Any] = json.loads(_KINDS[kind])
    document["shape"] = list(shape)
    document["chunk_grid"]["configuration"]["chunk_shape"] = list(outer)
    if shards is not None:
        document["codecs"][0]["configuration"]["chunk_shape"] = list(chunks)
    return document


def _made(*, shards: tuple[int, ...] | None, **array: Any) -> dict[str, Any]:
    """The document that zarr writes of an array, if it is of a form that is known here."""
    import zarr.api.asynchronous

    document = _written(lambda store: zarr.api.asynchronous.create_array(store, shards=shards, **array))
    codecs = document.get("codecs", [{}])
    if shards is not None:
        sharding = codecs[0].get("configuration", {})
        usual = {"index_location": "end", "index_codecs": [_LITTLE, {"name": "crc32c"}]}
        known = len(codecs) == 1 and codecs[0].get("name") == "sharding_indexed" and usual.items() <= sharding.items()
        codecs = sharding.get("codecs", [])
    else:
        known = True
    known = (
        known
        and len(codecs) == 2
        and document["fill_value"] == 0
        and document["chunk_grid"]["name"] == "regular"
        and document["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "/"}}
        and document["storage_transformers"] == []
    )
    if not known:
        raise AnotherRelease(f"zarr describes an array in another way here: {document}")
    return document


def _group_document() -> dict[str, Any]:
    import zarr.api.asynchronous

    if not _GROUP:
        _GROUP.append(json.dumps(_written(lambda store: zarr.api.asynchronous.create_group(store=store))))
    document: dict[str, Any] = json.loads(_GROUP[0])
    return document


def _written(create: Callable[[Any], Coroutine[Any, Any, Any]]) -> dict[str, Any]:
    """The document that zarr writes of a node, without a thread of its own: a fork server must have none."""
    import zarr.storage

    held: dict[str, Any] = {}
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(create(zarr.storage.MemoryStore(held)))
    finally:
        loop.close()
    document: dict[str, Any] = json.loads(held[METADATA].to_bytes())
    return document


def _refuse(what: str, more: Mapping[str, Any], *, known: bool) -> None:
    if more or not known:
        raise AnotherRelease(
            f"biosigIO asks zarr for {what} of another kind here{': ' if more else ''}{', '.join(more)}"
        )
