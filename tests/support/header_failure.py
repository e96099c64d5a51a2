"""How reading of a header failed."""

from __future__ import annotations

import pytest

from contract.codes import FailureCode
from contract.errors import RecordingFailed


def failure(call: object, *args: object) -> FailureCode:
    with pytest.raises(RecordingFailed) as caught:
        call(*args)  # type: ignore[operator]  # a bound method
    return caught.value.failure
