"""The viewer on a store of ``viewer_dataset``, in a browser: opened, waited for, and what it draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from looked_at import Visit
from looked_store import Drawn
from playwright.sync_api import Page
from served_dataset import Served

DATASET = "xx000008"
LONG_TEST_S = 60
Window = Callable[..., AbstractContextManager[Visit]]


@dataclass(frozen=True)
class Looked:
    """The dataset, converted, and a server over it with its state."""

    served: Served
    url: str

    def page(self, path: str) -> str:
        return f"/dashboard/datasets/{DATASET}/view/{path.rsplit('.', 1)[0]}.zarr"


def opened(visit: Visit, path: str, view: str = "") -> Page:
    """The viewer on a store, when everything that its window needs is drawn."""
    visit.page.goto("about:blank")  # another view of the same store would be no new page
    page = visit.open(path + view)
    return whole(page)


def whole(page: Page) -> Page:
    page.wait_for_selector("#viewer[data-state=whole]")
    # a frame may be due that the state does not tell yet
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_selector("#viewer[data-state=whole]")
    return page


def until(page: Page, expression: str) -> None:
    """Wait until an expression is true (``wait_for_function`` evaluates texts in the page, whose policy forbids it)."""
    deadline = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def reading(page: Page, row: int) -> Drawn:
    return Drawn(page.evaluate("(row) => document.getElementById('viewer').viewer.plot.reading(row)", row))


def state(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("document.getElementById('viewer').viewer.state")
    return found
