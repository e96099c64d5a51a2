from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from infra.telemetry import HumanLines, JsonLines

_SECRET = "Gr8secret-value"


def _record(message: str, *arguments: object, error: Exception | None = None) -> logging.LogRecord:
    trouble = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("zarrmill.infra", logging.WARNING, __file__, 1, message, arguments, trouble)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://user:{_SECRET}@host/db",
        f"https://{_SECRET}@host/repository.git",
        f"Authorization: Bearer {_SECRET}",
        f"sent bearer {_SECRET} to the gateway",
        f"token={_SECRET}&dataset=xx000001",
        f'{{"api_key": "{_SECRET}"}}',
        f"AWS_SECRET_ACCESS_KEY={_SECRET}",
        f"password: {_SECRET}",
        f"https://bucket/object?X-Amz-Signature={_SECRET}&x=1",
    ],
)
@pytest.mark.parametrize("formatter", [HumanLines(), JsonLines()])
def test_what_looks_like_a_secret_is_not_logged(formatter: logging.Formatter, text: str) -> None:
    shown = formatter.format(_record("first line\n%s", text, error=ValueError(text)))
    assert _SECRET not in shown
    assert "[redacted]" in shown


@pytest.mark.parametrize("kind", [HumanLines, JsonLines])
def test_a_known_secret_is_not_logged_wherever_it_stands(kind: type[HumanLines] | type[JsonLines]) -> None:
    assert _SECRET not in kind([_SECRET]).format(_record("it ends in %s", f"xx{_SECRET}yy"))


@pytest.mark.parametrize(
    "text", ["sub-01/eeg/sub-01_task-rest_eeg.edf: token of time", "/data/x@y/z", "see https://example.org/a/b@2"]
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert text in HumanLines().format(_record("%s", text))


def test_a_json_line_is_one_object_with_its_traceback() -> None:
    try:
        int("two\nlines")
    except ValueError as error:
        line = JsonLines().format(_record("it broke", error=error))
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"]) == ("warning", "zarrmill.infra", "it broke")
    assert "ValueError" in entry["traceback"]


@pytest.mark.parametrize(
    ("verbose", "seen"), [(False, ["ours warns", "theirs warns"]), (True, ["ours tells", "ours warns", "theirs warns"])]
)
def test_libraries_are_quiet_and_stdout_stays_clean(verbose: bool, seen: list[str]) -> None:
    program = f"""
import logging
from infra.telemetry import set_up_logging
set_up_logging(False, False)
set_up_logging({verbose}, True)
logging.getLogger("distributed.core").setLevel(logging.DEBUG)
logging.getLogger("zarrmill.infra").info("ours tells")
logging.getLogger("zarrmill.infra").warning("ours warns")
logging.getLogger("distributed.core").info("theirs tells")
logging.getLogger("distributed.core").warning("theirs warns")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert [json.loads(line)["message"] for line in done.stderr.splitlines()] == seen
