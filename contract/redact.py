"""What may be said in public about an error: no secret, no local path, one line, a bounded length.

The order matters: secrets first (a token may hold a slash), then paths, then the cut. Each rule leaves what it stands
beside, so that the cause of an error can still be read.
"""

from __future__ import annotations

import re

__all__ = ["PATH", "SECRET", "error_line", "redact"]

SECRET = "[redacted]"  # noqa: S105 the mark that stands in the place of a secret
PATH = "<path>"

_LONGEST_READ = 8_000

# While the rules work, a mark is one control character, which no text has by then: so no rule can cut a mark in two,
# and a value that is already a mark is replaced by itself.
_MARKS = ((SECRET, "\x01"), (PATH, "\x02"))
_S, _P = "\x01", "\x02"

# A value ends at a space, at a quote, at the next query parameter or where markup begins.
_VALUE = r"[^\s&\"'<>]+"
_SEPARATOR = r"(?:[\"']\s*[,:=]|\s*[:=])\s*(?:b(?=[\"']))?"
_HEADERS = r"authorization|proxy-authorization|cookie|set-cookie|x-webhook-token|x-auth-token|x-api-key|x-access-token"
_LABELS = (
    r"[a-z0-9_-]*(?:passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"
    r"|access[_-]?token|auth[_-]?token|session[_-]?token|security[_-]?token|refresh[_-]?token|webhook[_-]?token|callback[_-]?token"
    r"|client[_-]?secret)"
)

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # The whole value of a header, whatever its scheme: up to the closing quote, or to the end of the line.
    (re.compile(rf"(?i)\b((?:{_HEADERS}){_SEPARATOR}\")[^\"]+"), rf"\g<1>{_S}"),
    (re.compile(rf"(?i)\b((?:{_HEADERS}){_SEPARATOR}')[^']+"), rf"\g<1>{_S}"),
    (re.compile(rf"(?i)\b((?:{_HEADERS}){_SEPARATOR})(?![\"'\s]).+"), rf"\g<1>{_S}"),
    (re.compile(rf"(?i)(bearer\s+(?:tokens?\s*[:=]?\s*)?){_VALUE}"), rf"\g<1>{_S}"),
    (re.compile(r"(?i)(\bbasic\s+)(?=\S*[0-9=+/])[a-z0-9+/=]{8,}"), rf"\g<1>{_S}"),
    # user:password@host and token@host, in any scheme.
    (re.compile(r"(://)[^\s/@\"'<>]+:[^\s\"'<>]+@"), rf"\g<1>{_S}@"),
    (re.compile(r"(://)[^\s/@\"'<>]+@"), rf"\g<1>{_S}@"),
    # Query parameters.
    (re.compile(rf"(?i)(x-amz-[a-z0-9-]+(?:=|%3d)){_VALUE}"), rf"\g<1>{_S}"),
    (
        re.compile(
            rf"(?i)((?:[?&]|%26|%3f)(?:amp;)?[\w.-]*(?:token|key|secret|passw(?:or)?d|sig|signature|credential)(?:=|%3d)){_VALUE}"
        ),
        rf"\g<1>{_S}",
    ),
    # Labels that mean a secret wherever they stand; a bare key=value is nobody's business.
    (re.compile(rf"(?i)((?<![a-z0-9])signature(?:[\"']\s*[:=]|\s*[:=])\s*[\"']?){_VALUE}"), rf"\g<1>{_S}"),
    (re.compile(rf"(?i)((?<![a-z0-9_-]){_LABELS}(?:[\"']\s*[,:=]|\s*[:=])\s*[\"']?){_VALUE}"), rf"\g<1>{_S}"),
    (
        re.compile(rf"((?<![\w-])(?:token|secret|[A-Z][A-Z0-9_]*_(?:TOKEN|SECRET|KEY|PASSWORD))=[\"']?){_VALUE}"),
        rf"\g<1>{_S}",
    ),
    # Secrets that are known by their own shape.
    (re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16,}"), _S),
    (re.compile(r"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}"), _S),
    (re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), _S),
)

# A 40-character AWS secret key, looked for when paths are gone. A commit is 40 characters too, but hexadecimal; so one of
# each kind of character is asked.
_SECRET_KEY = re.compile(
    r"(?<![A-Za-z0-9+/])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*[0-9])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)

# Before a slash that begins an absolute path stands none of these: they make it a relative path, a unit or a quotient.
_NOT_BEFORE = r"(?<![\w.~/\\%+*?&#@)\]}°-])"
_BODY = r"(?:[^\s\"'<>|`]|'(?=\w))"
_PLACES = re.compile(
    rf"""
      (?P<bare>[A-Za-z][A-Za-z0-9+.-]{{0,30}}:///+{_BODY}*)                                  # file:///home/x, sqlite:////tmp/x
    | (?P<url>[A-Za-z][A-Za-z0-9+.-]{{0,30}}://(?:[^\s"'<>|`,;]|[,;](?!/|~|[A-Za-z]:[\\/]))*)
    | (?P<quoted>"(?:/|~[\w.-]*/|[A-Za-z]:[\\/]|\\\\)(?=[^"]*[^"\s/])[^"]*"
                |'(?:/|~[\w.-]*/|[A-Za-z]:[\\/]|\\\\)(?=[^']*[^'\s/])[^']*'(?!\w))
    | (?P<windows>(?<![A-Za-z0-9])[A-Za-z]:[\\/]{_BODY}+ | (?<!\S)\\\\[\w.$-]+\\{_BODY}+)
    | (?P<home>(?<![\w/~])~[\w.-]*/{_BODY}+)
    | (?P<posix>{_NOT_BEFORE}/+(?:[^\s"'<>|`/]+/|(?=[^\s"'<>|`/]*[^\W\d_])[^\s"'<>|`/]{{2}}){_BODY}*)
    """,
    re.VERBOSE,
)
_IN_URL = re.compile(r"(=(?:/|%2f))[^&\s#]+", re.IGNORECASE)
_TAIL = re.compile(r"[.,;:!?)\]}]+$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")


def redact(text: str | None, limit: int = 300) -> str | None:
    """The first line of ``text`` that says anything, fit to be published; None when there is none.

    Values of authorisation headers, bearer tokens, signatures, signed-URL parameters, credentials in URLs, access keys
    and everything labelled a password become ``[redacted]`` with their label kept. Absolute paths of this or another
    machine become ``<path>``. URLs, object keys, relative paths and units stay. Redacting twice changes nothing.
    """
    line = _first_line(text or "")
    while (redacted := _once(line, limit)) != line:
        line = redacted
    return line or None


def error_line(error: BaseException, limit: int = 300) -> str:
    """``ClassName: first line of its message``, redacted; the class alone when there is no message."""
    name = type(error).__name__
    message = redact(str(error), limit)
    return redact(f"{name}: {message}" if message else name, limit) or name


def _first_line(text: str) -> str:
    if len(text) > _LONGEST_READ:
        # what the cut has split, and could no longer be known for a secret, goes too
        text = re.sub(r"\S{1,400}$", "", text[:_LONGEST_READ])
    for line in text.splitlines():
        said = _CONTROL.sub(" ", line).strip()
        if said:
            return said
    return ""


def _once(line: str, limit: int) -> str:
    for mark, character in _MARKS:
        line = line.replace(mark, character)
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    line = _SECRET_KEY.sub(_S, _PLACES.sub(_without_place, line))
    return _cut(line, limit).strip()


def _without_place(match: re.Match[str]) -> str:
    found = match.group()
    if match["url"]:
        return _IN_URL.sub(f"={_P}", found)
    if match["quoted"]:
        return f"{found[0]}{_P}{found[-1]}"
    tail = _TAIL.search(found)
    closing = tail.group() if tail else ""
    if match["bare"]:
        scheme = found.split("://", 1)[0]
        return f"{scheme}://{_P}{closing}"
    return f"{_P}{closing}"


def _cut(line: str, limit: int) -> str:
    """The line with its marks spelled out, at most ``limit`` characters, never a part of a mark."""
    spelled = {character: mark for mark, character in _MARKS}
    pieces: list[str] = []
    for character in line:
        piece = spelled.get(character, character)
        limit -= len(piece)
        if limit < 0:
            break
        pieces.append(piece)
    return "".join(pieces)
