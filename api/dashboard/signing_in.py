"""Signing in with an operator's token, and out."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from api.dashboard.addresses import HOME, is_own_page
from api.dashboard.sessions import COOKIE, LASTS_S, begin_session, token_owner
from api.dashboard.site import Site, secure_headers

__all__ = ["add_signing_in"]


def add_signing_in(routes: APIRouter, site: Site) -> None:
    """The routes of signing in and out."""

    @routes.get(f"{HOME}/sign-in")
    def sign_in(request: Request) -> Response:
        wanted = request.query_params.get("next", HOME)
        return _form(request, site, wanted)

    @routes.post(f"{HOME}/sign-in")
    async def signed_in(request: Request) -> Response:
        fields = await site.form(request)
        wanted = fields.get("next", (HOME,))[-1]
        owner = token_owner(fields.get("token", ("",))[-1].strip(), site.operators)
        if owner is None:
            return _form(request, site, wanted, is_wrong=True)
        answer = _to(wanted if is_own_page(wanted) else HOME)
        answer.set_cookie(
            COOKIE,
            begin_session(owner),
            max_age=LASTS_S,
            path=HOME,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    @routes.post(f"{HOME}/sign-out")
    async def signed_out(request: Request) -> Response:
        await site.form(request)
        answer = _to(HOME)
        answer.delete_cookie(COOKIE, path=HOME, secure=request.url.scheme == "https", httponly=True, samesite="strict")
        return answer


def _to(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER, headers=secure_headers())


def _form(request: Request, site: Site, wanted: str, *, is_wrong: bool = False) -> Response:
    return site.page(
        request,
        "sign_in.html",
        reader=site.known(request),
        title="Sign in",
        status=HTTPStatus.UNAUTHORIZED if is_wrong else HTTPStatus.OK,
        wanted=wanted if is_own_page(wanted) else HOME,
        is_wrong=is_wrong,
    )
