"""Pages of the dashboard in a real browser: what they must never do, whether they are accessible, and pictures of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, Playwright
from product import ROOT

__all__ = ["DESK", "OPERATOR", "PHONE", "READER", "Visit", "check_accessible", "launch", "picture", "visiting"]

OPERATOR, READER = "token-of-ada-0123456789", "token-of-a-reader-0123456789"
PICTURES = ROOT / "docs" / "images" / "dashboard"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}
_PATIENCE_MS = 30_000
_COMMONEST, _COLOURS = 32, 96


def launch(playwright: Playwright) -> Browser:
    """Debian's chromium."""
    return playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])


@dataclass
class Visit:
    """One browser window on one server. ``complaints`` are errors of scripts, of the console and of the policy."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Go to a page and wait until it is drawn, charts too."""
        answer = self.page.goto(f"{self.url}{path}", wait_until="load")
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        assert self.page.locator("figure[data-chart] .drawing:empty").count() == 0, f"{path}: a chart is not drawn"
        return self.page

    def sign_in(self, token: str = OPERATOR) -> None:
        """Sign in with a token, as people do."""
        self.open("/dashboard/sign-in")
        self.page.get_by_label("Your operator's token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()


@contextmanager
def visiting(browser: Browser, url: str, **given: Any) -> Iterator[Visit]:
    """A fresh window; when it closes, nothing may have gone wrong in it. ``given``: ``color_scheme="dark"``, ``viewport=PHONE``, ..."""
    context = browser.new_context(**{"viewport": DESK, "color_scheme": "light", "reduced_motion": "reduce", **given})
    context.set_default_timeout(_PATIENCE_MS)
    visit = Visit(context.new_page(), url)
    visit.page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}"))
    visit.page.on("dialog", lambda dialog: visit.complaints.append(f"a tag was run: {dialog.message}"))
    visit.page.on(
        "console", lambda said: visit.complaints.append(said.text) if said.type in {"error", "warning"} else None
    )
    try:
        yield visit
        assert visit.complaints == [], visit.complaints
    finally:
        context.close()


def check_accessible(page: Page, axe: Path) -> None:
    """Axe finds nothing serious on the page as it stands; ``axe`` is the fixture of that name."""
    # evaluated by the browser itself and not added to the page, whose policy would refuse it
    page.evaluate(axe.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations']})"
    )
    serious = [
        {
            "rule": one["id"],
            "help": one["help"],
            "where": [node["target"] for node in one["nodes"][:5]],
            "why": one["nodes"][0]["failureSummary"],
        }
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    assert not serious, json.dumps(serious, indent=1)


def picture(page: Page, name: str, *, wanted: bool, whole: bool = False) -> None:
    """Write a picture of the page to docs/images/dashboard when ``wanted`` (``--write-pictures``), of few colours to be small."""
    if not wanted:
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.evaluate("window.scrollTo(0, 0)")
    taken = Image.open(io.BytesIO(page.screenshot(full_page=whole, animations="disabled"))).convert("RGB")
    _in_few_colours(taken).save(PICTURES / f"{name}.png", optimize=True)


def _in_few_colours(taken: Image.Image) -> Image.Image:
    """The picture with its commonest colours as they are, which keeps grounds from a tint, and others so chosen that the rare keep their hue."""
    colours, which, counts = np.unique(
        np.asarray(taken).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    chosen = taken.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).getpalette() or []
    commonest = colours[np.argsort(-counts)[:_COMMONEST]]
    palette = np.concatenate([commonest, np.reshape(chosen, (-1, 3))[:_COLOURS]]).astype(int)
    nearest = [int(np.square(palette - colour).sum(axis=1).argmin()) for colour in colours.astype(int)]
    few = Image.fromarray(np.asarray(nearest, np.uint8)[which].reshape(taken.height, taken.width), "P")
    few.putpalette(palette.astype(np.uint8).tobytes())
    return few
