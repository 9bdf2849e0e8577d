"""The pages that verify a second factor, and enrol one that the organization requires."""

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
from gatehouse.platform.access.mfa.person import LoginSubject
from gatehouse.platform.access.mfa.schemas import Verification
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.sign_in import mfa_cookie, paths
from gatehouse.platform.access.sign_in.form_pages import redirect, render_form, sign_in_browser
from gatehouse.platform.access.sign_in.link_parameters import Link
from gatehouse.platform.access.sign_in.posted_forms import Form, FormFieldError, Posted, parse_body
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(include_in_schema=False)

_PASSKEY_NAME: Final = "Passkey"


async def _redirect_expired(request: Request, host: Host, next_path: str) -> Response:
    """Redirect to the sign-in page because the pending login is void. If the browser is signed in, no note is shown."""
    signed_in = await browser.current_session(request, host) is not None
    response = redirect(paths.link_to("/login", next_path, done=None if signed_in else "expired"))
    mfa_cookie.clear_cookie(response)
    return response


@router.get("/login/second-factor")
async def second_factor_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _render_second_factor(request, host, link.next)


@router.post("/login/second-factor")
async def verify_second_factor(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        subject = await mfa_cookie.login_subject(request, host)
        verification = parse_body(
            Verification,
            method=form.get("method"),
            code=form.stripped("code"),
            credential=_credential(form),
        )
        secret = await mfa.verify(request, host, subject, verification, open_in_browser)
    except InvalidMfaToken:
        return await _redirect_expired(request, host, form.next)
    except (WrongCode, FormFieldError):
        return await _render_second_factor(
            request, host, form.next, 401, fault=WrongCode.message, recovering=form.get("method") == "recovery"
        )
    return _signed_in_response(redirect(form.next), secret, host)


async def _render_second_factor(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    fault: str | None = None,
    recovering: bool = False,
) -> Response:
    try:
        subject = await mfa_cookie.login_subject(request, host)
        usable = (await mfa_cookie.factor_requirements(host, subject)).usable
        passkey = await _assertion_options(request, host, subject) if "webauthn" in usable else None
    except InvalidMfaToken:
        return await _redirect_expired(request, host, next_path)
    if not usable:
        return redirect(paths.link_to("/login/enrol", next_path))
    return await render_form(
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
        login_url=paths.link_to("/login", next_path),
    )


@router.get("/login/enrol")
async def enrol_page(request: Request, host: TheHost, link: Link) -> Response:
    return await _render_enrol(request, host, link.next)


@router.post("/login/enrol/app")
async def begin_app(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        totp_secret = await enrolment.begin_totp(request, host, await mfa_cookie.login_subject(request, host))
    except (InvalidMfaToken, EnrolmentOnly):
        return await _redirect_expired(request, host, form.next)
    return await _render_app(request, host, form.next, secret=totp_secret.secret, url=totp_secret.otpauth_url)


@router.post("/login/enrol/app/confirm")
async def confirm_app(request: Request, host: TheHost, form: Posted) -> Response:
    try:
        subject = await mfa_cookie.login_subject(request, host)
        cookie_secret, codes = await enrolment.confirm_totp(request, host, subject, form.get("code"), open_in_browser)
    except (InvalidMfaToken, EnrolmentOnly):
        return await _redirect_expired(request, host, form.next)
    except NotConfirmed:
        # The page shows the same secret again, because the app already has it.
        secret, url, fault = form.get("secret"), form.get("url"), "This is not the code that the app shows now."
        return await _render_app(request, host, form.next, 400, secret=secret, url=url, fault=fault)
    return _enrolled_response(host, form.next, cookie_secret, codes)


@router.post("/login/enrol/passkey")
async def enrol_passkey(request: Request, host: TheHost, form: Posted) -> Response:
    credential = _credential(form)
    try:
        subject = await mfa_cookie.login_subject(request, host)
        cookie_secret, codes = await enrolment.finish_passkey(
            request, host, subject, _PASSKEY_NAME, credential or {}, complete=open_in_browser
        )
    except (InvalidMfaToken, EnrolmentOnly):
        return await _redirect_expired(request, host, form.next)
    except BadCredential:
        return await _render_enrol(request, host, form.next, 400, fault="That passkey could not be used. Try again.")
    return _enrolled_response(host, form.next, cookie_secret, codes)


async def _render_enrol(
    request: Request, host: Host, next_path: str, status: int = 200, *, fault: str | None = None
) -> Response:
    try:
        subject = await mfa_cookie.login_subject(request, host)
        requirements = await mfa_cookie.factor_requirements(host, subject)
        passkey = (
            await _registration_options(request, host, subject) if "webauthn" in requirements.policy.methods else None
        )
    except (InvalidMfaToken, EnrolmentOnly):
        return await _redirect_expired(request, host, next_path)
    return await render_form(
        request,
        host,
        "enrol.html",
        status,
        next_path=next_path,
        fault=fault,
        passkey=passkey,
        totp="totp" in requirements.policy.methods,
        login_url=paths.link_to("/login", next_path),
    )


async def _render_app(
    request: Request,
    host: Host,
    next_path: str,
    status: int = 200,
    *,
    secret: str,
    url: str,
    fault: str | None = None,
) -> Response:
    return await render_form(
        request,
        host,
        "enrol_app.html",
        status,
        next_path=next_path,
        secret=secret,
        url=url,
        fault=fault,
        back_url=paths.link_to("/login/enrol", next_path),
    )


def _enrolled_response(host: Host, next_path: str, cookie_secret: object, codes: list[str] | None) -> Response:
    response = redirect(next_path) if codes is None else page("recovery_codes.html", codes=codes, next=next_path)
    return _signed_in_response(response, cookie_secret, host)


def _signed_in_response(response: Response, cookie_secret: object, host: Host) -> Response:
    assert isinstance(cookie_secret, str)  # `open_in_browser` returns the cookie's secret
    mfa_cookie.clear_cookie(response)
    return sign_in_browser(response, cookie_secret, host)


async def _assertion_options(request: Request, host: Host, subject: LoginSubject) -> str | None:
    try:
        return json.dumps(await enrolment.begin_assertion(request, host, subject))
    except PasskeysUnavailable:
        return None


async def _registration_options(request: Request, host: Host, subject: LoginSubject) -> str | None:
    try:
        return json.dumps(await enrolment.begin_passkey(request, host, subject))
    except PasskeysUnavailable:
        return None


def _credential(form: Form) -> dict[str, Any] | None:
    """Return the credential that the browser's script put into the form; None for anything else."""
    try:
        credential = json.loads(form.get("credential") or "null")
    except (ValueError, RecursionError):
        return None
    return credential if isinstance(credential, dict) else None
