"""What every page of the dashboard is made with: who looks, the form that was sent, and the template that answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from api.dashboard import addresses
from api.dashboard.assets import asset_address
from api.dashboard.paging import with_query
from api.dashboard.sessions import COOKIE, Reader, find_session
from api.dashboard.showing import FILTERS, ago, share_text
from api.errors import ApiError
from api.webhooks import same_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.service import Service

__all__ = ["Acting", "Site", "policy_header", "secure_headers"]

_POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
_MOST_FIELDS = 500


def policy_header(**more: str) -> str:
    """The Content-Security-Policy: nothing from elsewhere, nothing inline. ``script_src="'wasm-unsafe-eval'"`` adds to a part."""
    added = {name.replace("_", "-"): value for name, value in more.items()}
    return "; ".join(f"{name} {value} {added.get(name, '')}".strip() for name, value in _POLICY.items())


def secure_headers(**more: str) -> dict[str, str]:
    """The headers of every page; ``more`` is added to the policy."""
    return {
        "Content-Security-Policy": policy_header(**more),
        "Referrer-Policy": "same-origin",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-store",
    }


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("api.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(asset=asset_address, share=share_text, addresses=addresses)
    return made


@dataclass(frozen=True, slots=True)
class Acting:
    """An operator who sent a form from a page of ours. ``form`` has the last value of each field, ``lists`` all of them."""

    who: str
    reader: Reader
    form: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]


class Site:
    """The dashboard of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.operators = service.settings.operators()

    def known(self, request: Request) -> Reader:
        """Who looks, whatever may be shown to whom."""
        return find_session(request.cookies.get(COOKIE), self.operators)

    def reader(self, request: Request) -> Reader:
        """The dependency of every page that only shows: who looks. Where reading needs a token, others are sent to sign in."""
        found = self.known(request)
        if self.service.settings.dashboard_reads == "token" and not found.is_signed_in:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            if "text/html" not in request.headers.get("accept", ""):
                raise ApiError(HTTPStatus.UNAUTHORIZED, "Sign in to read this.")
            there = f"{addresses.HOME}/sign-in?next={quote(wanted, safe='')}"
            raise HTTPException(HTTPStatus.SEE_OTHER, "Sign in to read this.", headers={"Location": there})
        return found

    async def operator(self, request: Request) -> Acting:
        """The dependency of every form that does something: signed in with the scope operate, and sent from a page of ours."""
        fields = await self.form(request)
        reader = self.known(request)
        if not reader.is_signed_in:
            raise ApiError(HTTPStatus.UNAUTHORIZED, "Sign in with a token that may operate.")
        if not reader.may_operate:
            raise ApiError(HTTPStatus.FORBIDDEN, "This token may read and not operate.")
        last = {name: values[-1] for name, values in fields.items()}
        if not same_secret(last.get("csrf"), reader.csrf):
            raise ApiError(HTTPStatus.FORBIDDEN, "The form is out of date. Load the page anew and try again.")
        return Acting(reader.who or "", reader, last, fields)

    async def form(self, request: Request) -> dict[str, tuple[str, ...]]:
        """The fields of a form; ApiError when it was not sent by a page of this server."""
        if not _is_from_here(request):
            raise ApiError(HTTPStatus.FORBIDDEN, "This form was sent from a page of another site.")
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise ApiError(HTTPStatus.BAD_REQUEST, "This is not what a form sends.")
        found: dict[str, tuple[str, ...]] = {}
        try:
            text = (await request.body()).decode()
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
        except ValueError:
            raise ApiError(HTTPStatus.BAD_REQUEST, "The form cannot be understood.") from None
        for name, value in pairs:
            if "\x00" in value:
                raise ApiError(HTTPStatus.BAD_REQUEST, "The form cannot be understood.")
            found[name] = (*found.get(name, ()), value)
        return found

    def page(
        self,
        request: Request,
        template: str,
        *,
        reader: Reader,
        title: str,
        as_of: datetime | None = None,
        trail: tuple[tuple[str, str], ...] = (),
        status: int = HTTPStatus.OK,
        policy: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """A page from a template.

        Parameters
        ----------
        as_of
            The moment that the numbers are of: the database's clock (``db.standings.clock``); by default this machine's.
        trail
            Where the page stands: (title, address) of each page above it, without the overview.
        policy
            What is added to parts of the Content-Security-Policy, such as ``{"script_src": "'wasm-unsafe-eval'"}``.
        values
            Everything else that the template shows.
        """
        moment = as_of or datetime.now(UTC)
        html = self.markup(
            request, template, reader=reader, title=title, as_of=moment, trail=trail, status=status, **values
        )
        return HTMLResponse(html, status_code=status, headers=secure_headers(**(policy or {})))

    def markup(self, request: Request, template: str, *, as_of: datetime, **values: Any) -> str:
        """The text of a template, whole or a part of a page."""
        made: str = (
            _templates()
            .get_template(template)
            .render(
                **values,
                as_of=as_of,
                ago=partial(ago, now=as_of),
                here=partial(with_query, request),
                path=request.url.path,
                archive=self.service.settings.archive_name,
                can_sign_in=bool(self.operators),
                has_callbacks=bool(self.service.settings.callback_endpoints()),
            )
        )
        return made


def _is_from_here(request: Request) -> bool:
    """Whether a page of this server sent it, by what browsers say of it; what says nothing is no browser, and has no cookie of ours."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
