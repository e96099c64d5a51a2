from __future__ import annotations

from pathlib import Path

import pytest

from contract.verification import CHECK_SENTENCES, Check

PAGE = Path(__file__).parents[2] / "docs" / "verifying.md"


@pytest.mark.parametrize("check", list(Check))
def test_every_word_of_a_failed_verdict_is_explained(check: Check) -> None:
    assert f"| `{check.value}` | {CHECK_SENTENCES[check]} |" in PAGE.read_text(encoding="utf-8").splitlines()
