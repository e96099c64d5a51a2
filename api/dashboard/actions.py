"""What operators do from a page: first what it would do, then, with what was seen, the deed itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from api.dashboard import addresses
from api.dashboard.asked import check_word
from api.dashboard.seen import dataset_for
from api.dashboard.site import Acting, Site, secure_headers
from api.dashboard.table import WORDS
from api.errors import ApiError
from contract.codes import FailureCode
from db import operators
from db.recordings import why
from flows.intentions import VERBS, ChangedMeanwhile, Intention
from flows.operations import Operator
from flows.proposals import carry_out, propose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from db.dataset_values import Dataset
    from flows.intentions import Proposal


__all__ = ["add_actions"]

_MODES: Final = {"auto": "auto", "retry-pending": "retry-pending", "full": "full"}
_CODES: Final = frozenset(code.value for code in FailureCode)
_KEPT: Final = ("mode", "commit", "code", "visibility", "active", "path")
_PATIENCE_S: Final = 20.0
_LONGEST_WHY: Final = 1000


def add_actions(routes: APIRouter, site: Site) -> None:
    """The route of the forms of a dataset's and a recording's page."""
    acting = Depends(site.operator)
    # a withdrawal of a large dataset takes longer than a browser waits; it goes on, and is a run that the page shows
    long_ones = ThreadPoolExecutor(4, thread_name_prefix="dashboard-action")

    @routes.post(addresses.HOME + "/datasets/{dataset_id}/actions/{verb}")
    def act(request: Request, dataset_id: str, verb: str, sent: Acting = acting) -> Response:
        if verb not in VERBS:
            raise ApiError(HTTPStatus.NOT_FOUND, "There is no such action.")
        service = site.service
        with service.reading() as c:
            dataset = dataset_for(c, site, sent.reader, dataset_id)
            path = sent.form.get("path") or None
            recording = None if path is None else why(c, dataset=dataset, path=path, newest=0)
        if path is not None and recording is None:
            raise ApiError(HTTPStatus.NOT_FOUND, "There is no such recording.")
        meant = _intention(verb, sent.form, None if recording is None else recording.state.id)
        operator = Operator(name=sent.who, why=(sent.form.get("why") or "").strip()[:_LONGEST_WHY] or None)
        back = addresses.dataset_page(dataset_id) if path is None else addresses.recording_page(dataset_id, path)
        seen, changed = sent.form.get("seen"), False
        try:
            if seen:
                doing = long_ones.submit(
                    carry_out, service.settings, service.state, dataset, meant, operator, seen=seen
                )
                try:
                    doing.result(_PATIENCE_S)
                except NotYet:
                    return _to(back)
                return _to(f"{back}?acted={_last(site, sent.who)}")
            proposal = propose(service.settings, service.state, dataset, meant, operator)
        except ChangedMeanwhile as other:
            proposal, changed = other.proposal, True
        return _shown(request, site, sent, dataset, proposal=proposal, verb=verb, back=back, changed=changed)


def _shown(
    request: Request,
    site: Site,
    sent: Acting,
    dataset: Dataset,
    *,
    proposal: Proposal,
    verb: str,
    back: str,
    changed: bool,
) -> Response:
    trail = [(dataset.dataset_id, addresses.dataset_page(dataset.dataset_id))]
    if path := sent.form.get("path"):
        trail.append((path.rpartition("/")[2], back))
    return site.page(
        request,
        "action.html",
        reader=sent.reader,
        title=proposal.title,
        trail=tuple(trail),
        status=HTTPStatus.CONFLICT if changed else HTTPStatus.OK,
        dataset=dataset,
        verb=verb,
        proposal=proposal,
        fields={name: value for name in _KEPT if (value := sent.form.get(name))},
        why=sent.form.get("why", ""),
        back=back,
        changed=changed,
    )


def _last(site: Site, who: str) -> int:
    """The number of what somebody did last."""
    with site.service.reading() as c:
        found = operators.last_actions(c, limit=20)
    return next((one.pk for one in found if one.executed and one.acted_by == who), 0)


def _to(address: str) -> Response:
    return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER, headers=secure_headers())


def _intention(verb: str, form: Mapping[str, str], recording: int | None) -> Intention:
    word, mode = form.get("code") or None, form.get("mode") or "auto"
    visibility, active = form.get("visibility") or None, form.get("active") or None
    for name, value, known in (
        ("code", word, WORDS),
        ("mode", mode, tuple(_MODES)),
        ("visibility", visibility, ("public", "private")),
        ("active", active, ("yes", "no")),
    ):
        check_word(name, value, known)
    return Intention(
        verb=verb,
        mode="full" if mode == "full" else "retry-pending" if mode == "retry-pending" else "auto",
        commit=(form.get("commit") or "").strip() or None,
        codes=frozenset({word} if word in _CODES else ()),
        reasons=frozenset({word} if word is not None and word not in _CODES else ()),
        recording=recording,
        visibility=visibility if verb == "standing" else None,
        active=None if active is None or verb != "standing" else active == "yes",
    )
