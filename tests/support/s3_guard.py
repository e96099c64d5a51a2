"""Who may do what at the S3 endpoint of tests, which itself lets anybody list and write, and adds CORS headers to everything.

Around moto's application: a request without a signature gets an object where the bucket's policy lets everybody read, and nothing else; CORS
headers are those of the bucket's own rules. With ``key_id`` a signature by another key is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from werkzeug.test import Client

_DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_UNKNOWN_KEY = b"<?xml version='1.0'?><Error><Code>InvalidAccessKeyId</Code><Message>Unknown</Message></Error>"
_SIGNED = "AWS4-HMAC-SHA256 Credential=guard/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"

Start = Callable[..., Any]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]


class Guard:
    def __init__(self, app: Application, *, key_id: str | None = None) -> None:
        self._app = app
        self._key_id = key_id

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        bucket, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
        origin, method = environ.get("HTTP_ORIGIN"), environ["REQUEST_METHOD"]
        allowed = self._cors(bucket, origin, environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD", method))
        if method == "OPTIONS":
            return _answer(start, "200 OK" if allowed else "403 Forbidden", b"", allowed)
        signature = environ.get("HTTP_AUTHORIZATION", "") or "".join(
            parse_qs(environ.get("QUERY_STRING", "")).get("X-Amz-Credential", [])
        )
        if not signature and not (key and method in ("GET", "HEAD")):
            return _answer(start, "403 Forbidden", _DENIED, allowed)
        if signature and self._key_id is not None and f"{self._key_id}/" not in signature:
            return _answer(start, "403 Forbidden", _UNKNOWN_KEY, allowed)

        def with_rules(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            kept = [one for one in headers if not one[0].lower().startswith("access-control-")]
            return start(status, kept + allowed, *more)

        return self._app(environ, with_rules)

    def _cors(self, bucket: str, origin: str | None, method: str) -> list[tuple[str, str]]:
        """CORS headers for a request of a page; none where no rule of the bucket knows its origin and method."""
        if origin is None or not bucket:
            return []
        rules = Client(self._app).get(f"/{bucket}?cors", headers={"Authorization": _SIGNED}).get_data(as_text=True)
        for rule in re.findall(r"<CORSRule>(.*?)</CORSRule>", rules, re.DOTALL):
            origins = re.findall(r"<AllowedOrigin>(.*?)</AllowedOrigin>", rule)
            methods = re.findall(r"<AllowedMethod>(.*?)</AllowedMethod>", rule)
            if method in methods and ("*" in origins or origin in origins):
                headers = re.findall(r"<AllowedHeader>(.*?)</AllowedHeader>", rule)
                exposed = re.findall(r"<ExposeHeader>(.*?)</ExposeHeader>", rule)
                return [
                    ("Access-Control-Allow-Origin", "*" if "*" in origins else origin),
                    ("Access-Control-Allow-Methods", ", ".join(methods)),
                    ("Access-Control-Allow-Headers", ", ".join(headers)),
                    ("Access-Control-Expose-Headers", ", ".join(exposed)),
                ]
        return []


def _answer(start: Start, status: str, body: bytes, more: list[tuple[str, str]]) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body))), *more])
    return [body]
