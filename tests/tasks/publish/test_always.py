"""Whatever a dataset goes through, what is published adds up and publishing twice writes once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from fabricated import tree_of
from hypothesis import given, settings
from hypothesis import strategies as st
from press import Press, zarr_of
from sqlalchemy import Engine
from state_bench import planned

from contract.codes import FailureCode
from contract.documents import parse
from contract.index import LocalIndex
from contract.manifest import Manifest
from tasks.publish.dataset import is_current

NAMES = ("01", "02", "03")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["new source", "vanish", "publish"]),
        st.sampled_from(NAMES),
        st.sampled_from(["convert", "convert without events", "fail", "postpone", "leave"]),
    ),
    min_size=1,
    max_size=4,
)


def carry_out(press: Press, number: int, step: tuple[str, str, str]) -> None:
    action, name, outcome = step
    if action == "vanish":
        press.rows.pop(name, None)
        press.begin_run()
    elif action == "new source":
        source = f"s{number}"
        press.begin_run(**{name: planned(name, source=source)})
        if outcome.startswith("convert"):
            more = {"events": None} if outcome.endswith("events") else {}
            press.convert(name, source=source, version=source, **more)
        elif outcome == "fail":
            press.fail(name, FailureCode.EMPTY_RECORDING)
        elif outcome == "postpone":
            press.postpone(name)
    else:
        press.publish()


@given(steps=STEPS)
@settings(max_examples=6)
def test_the_published_documents_always_add_up(shared_engine: Engine, steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as folder:
        press = Press(shared_engine, Path(folder))
        press.plan(NAMES[0])
        for number, step in enumerate(steps):
            carry_out(press, number, step)
        published = press.publish()
        index = parse(LocalIndex, (press.home / "index.json").read_bytes())
        manifest = parse(Manifest, (press.home / "manifest.json").read_bytes())
        listed = [entry.path for entries in (index.stores, index.failures, index.pending) for entry in entries]
        assert sorted(listed) == sorted(row.path for row in press.rows.values())
        assert [store.zarr for store in manifest.stores] == [store.zarr for store in index.stores]
        assert (published.events_row_count or 0) == 2 * sum(store.n_events == 2 for store in index.stores)
        roots = {name.removesuffix("/zarr.json") for name in tree_of(press.home) if name.endswith("/zarr.json")}
        assert {store.zarr for store in index.stores} <= roots
        due = {zarr_of(name) for name in press.rows if press.state(name).due == "pending"}
        assert roots - {store.zarr for store in index.stores} <= due, "only what is to be replaced may stand unnamed"
        assert is_current(press.engine, press.target, press.edition())
        before = tree_of(press.target.root)
        assert not press.publish().changed
        assert tree_of(press.target.root) == before
