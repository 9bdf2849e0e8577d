"""The pages of the second factor: showing one, and enrolling one where the organization wants it."""

import json
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from gatehouse.platform.access import browser
from gatehouse.platform.access.browser import open_in_browser
from gatehouse.platform.access.mfa import enrolment
from gatehouse.platform.access.mfa import service as mfa
from gatehouse.platform.access.mfa.errors import (
    BadCredential,
    EnrolmentOnly,
    InvalidMfaToken,
    NotConfirmed,
    PasskeysUnavailable,
    WrongCode,
)
from gatehouse.platform.access.mfa.person import SigningIn
from gatehouse.platform.access.mfa.schemas import Verification
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.sign_in import half_way, paths
from gatehouse.platform.access.sign_in.arriving import Link
from gatehouse.platform.access.sign_in.posted import Form, Mistyped, Posted, body_of
from gatehouse.platform.access.sign_in.showing import entered, go, show
from gatehouse.platform.ports import Host, TheHost

router = APIRouter(include_in_schema=False)

_PASSKEY_NAME: Final = "Passkey"


async def _over(request: Request, host: Host, next_path: str) -> Response:
    """The half-way sign-in has expired, or was wrong too often. Whoever is signed in needs none."""
    signed_in = await browser.current(request, host) is not None
    response = go(paths.to("/login", next_path, done=None if signed_in else "expired"))
    half_way.forget(response)
    return response


@router.get("/login/second-factor")
async def second_factor_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _second_factor(request, host, link.next)


@router.post("/login/second-factor")
async def show_second_factor(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        who = await half_way.person(request, host)
        given = body_of(
            Verification,
            method=form.get("method"),
            code=form.word("code"),
            credential=_credential(form),
        )
        secret = await mfa.verify(request, host, who, given, open_in_browser)
    except InvalidMfaToken:
        return await _over(request, host, form.next)
    except (WrongCode, Mistyped):
        return await _second_factor(
            request, host, form.next, 401, fault=WrongCode.message, recovering=form.get("method") == "recovery"
        )
    return _done(go(form.next), secret, host)


async def _second_factor(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    fault: str | None = None,
    recovering: bool = False,
) -> Response:
    try:
        who = await half_way.person(request, host)
        usable = (await half_way.standing(host, who)).usable
        passkey = await _assertion(request, host, who) if "webauthn" in usable else None
    except InvalidMfaToken:
        return await _over(request, host, next_path)
    if not usable:
        return go(paths.to("/login/enrol", next_path))
    return await show(
        request,
        host,
        "second_factor.html",
        status,
        next_path=next_path,
        fault=fault,
        recovering=recovering,
        passkey=passkey,
        totp="totp" in usable,
        recovery="recovery" in usable,
        login_url=paths.to("/login", next_path),
    )


@router.get("/login/enrol")
async def enrol_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _enrol(request, host, link.next)


@router.post("/login/enrol/app")
async def begin_app(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        made = await enrolment.begin_totp(request, host, await half_way.person(request, host))
    except (InvalidMfaToken, EnrolmentOnly):
        return await _over(request, host, form.next)
    return await _app(request, host, form.next, secret=made.secret, url=made.otpauth_url)


@router.post("/login/enrol/app/confirm")
async def confirm_app(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        who = await half_way.person(request, host)
        cookie_secret, codes = await enrolment.confirm_totp(request, host, who, form.get("code"), open_in_browser)
    except (InvalidMfaToken, EnrolmentOnly):
        return await _over(request, host, form.next)
    except NotConfirmed:
        # What the page showed before is shown again: it is what the app was given.
        secret, url, fault = form.get("secret"), form.get("url"), "This is not the code that the app shows now."
        return await _app(request, host, form.next, 400, secret=secret, url=url, fault=fault)
    return _enrolled(host, form.next, cookie_secret, codes)


@router.post("/login/enrol/passkey")
async def enrol_passkey(request: Request, host: TheHost, form: Posted) -> Response:
    credential = _credential(form)
    try:
        who = await half_way.person(request, host)
        cookie_secret, codes = await enrolment.finish_passkey(
            request, host, who, _PASSKEY_NAME, credential or {}, enter=open_in_browser
        )
    except (InvalidMfaToken, EnrolmentOnly):
        return await _over(request, host, form.next)
    except BadCredential:
        return await _enrol(request, host, form.next, 400, fault="That passkey could not be used. Try again.")
    return _enrolled(host, form.next, cookie_secret, codes)


async def _enrol(
    request: Request, host: Host, next_path: str, status: int = 200, *, fault: str | None = None
) -> Response:
    try:
        who = await half_way.person(request, host)
        stands = await half_way.standing(host, who)
        passkey = await _registration(request, host, who) if "webauthn" in stands.policy.methods else None
    except (InvalidMfaToken, EnrolmentOnly):
        return await _over(request, host, next_path)
    return await show(
        request,
        host,
        "enrol.html",
        status,
        next_path=next_path,
        fault=fault,
        passkey=passkey,
        totp="totp" in stands.policy.methods,
        login_url=paths.to("/login", next_path),
    )


async def _app(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    secret: str,
    url: str,
    fault: str | None = None,
) -> Response:
    return await show(
        request,
        host,
        "enrol_app.html",
        status,
        next_path=next_path,
        secret=secret,
        url=url,
        fault=fault,
        back_url=paths.to("/login/enrol", next_path),
    )


def _enrolled(host: Host, next_path: str, cookie_secret: object, codes: list[str] | None) -> Response:
    response = go(next_path) if codes is None else page("recovery_codes.html", codes=codes, next=next_path)
    return _done(response, cookie_secret, host)


def _done(response: Response, cookie_secret: object, host: Host) -> Response:
    assert isinstance(cookie_secret, str)  # who signs in by a page enters with a cookie
    half_way.forget(response)
    return entered(response, cookie_secret, host)


async def _assertion(request: Request, host: Host, who: SigningIn) -> str | None:
    try:
        return json.dumps(await enrolment.begin_assertion(request, host, who))
    except PasskeysUnavailable:
        return None


async def _registration(request: Request, host: Host, who: SigningIn) -> str | None:
    try:
        return json.dumps(await enrolment.begin_passkey(request, host, who))
    except PasskeysUnavailable:
        return None


def _credential(form: Form) -> dict[str, Any] | None:
    """What the browser's script put into the form; None for anything else."""
    try:
        found = json.loads(form.get("credential") or "null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
