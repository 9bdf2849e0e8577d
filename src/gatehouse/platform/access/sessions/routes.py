"""Endpoints of sessions (docs/sessions.md)."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from gatehouse.foundation.http.lists import OptionalWindow, optional_window, windowed
from gatehouse.platform.access.sessions import service
from gatehouse.platform.access.sessions.errors import SessionNotFound
from gatehouse.platform.access.sessions.schemas import Login, LoginRefused, Refresh, Session, Tokens
from gatehouse.platform.access.sessions.table import SessionRow, open_sessions
from gatehouse.platform.access.users.routes import LoadedUser
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp, SessionUser
from gatehouse.platform.request.injected import Changing, loaded
from gatehouse.platform.request.injected import Session as DatabaseSession
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/auth", tags=["Sessions"])
#: the sessions of any user, for administrators
of_users = APIRouter(prefix="/api/admin/users", tags=["Sessions"], responses=RESPONSES)

_LOGIN_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {
        "description": "`tenant_required`: the name and password match accounts in several organizations, listed in"
        " `tenants`."
    },
    401: {
        "model": LoginRefused,
        "description": "`detail`: the sign-in failed; the response is the same for every reason. Or `mfa_required`: the"
        " password was right, and `mfa_token` continues the sign-in.",
    },
}
_REFRESH_REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "The token is not valid. The response is the same for every reason."},
}

Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
LoadedSession = Annotated[SessionRow, Depends(loaded(SessionRow, "session_id", SessionNotFound))]


@router.post("/login", response_model=Tokens, responses=_LOGIN_REFUSED)
async def log_in(body: Login, request: Request, host: TheHost) -> object:
    """Signs in with an address or user name and a password.

    An address of a verified domain belongs to the organization that has verified it. For any other address the password
    is tried with the eight oldest active accounts that have a password. If it matches several accounts, the request
    must name the `tenant`. A user who has or needs a second factor gets an `mfa_token`, and continues at `POST
    /api/auth/mfa/verify`.
    """
    return await service.login(request, host, body, service.complete_with_tokens)


@router.post("/refresh", response_model=Tokens, responses=_REFRESH_REFUSED)
async def refresh(body: Refresh, request: Request, host: TheHost) -> object:
    """Exchanges a refresh token for new tokens. A refresh token that is used a second time ends the session."""
    return await service.refresh(request, host, body.refresh_token)


@router.get("/sessions", response_model=list[Session], responses=RESPONSES)
async def list_sessions(caller: SessionUser, session: DatabaseSession, window: Window, response: Response) -> object:
    """Returns your open sessions, by default all of them, newest first. The header `X-Total-Count` is the number of all
    your open sessions, regardless of `limit` and `offset`."""
    assert caller.user_id is not None
    rows = await windowed(session, open_sessions(caller.user_id), window, response)
    return service.to_shown(rows, caller)


@router.delete("/sessions/{session_id}", status_code=204, responses=RESPONSES)
async def end_session(caller: SessionUser, ended: LoadedSession, change: Changing) -> None:
    """Ends one of your sessions. When the response is sent, its tokens are refused."""
    await service.end_own_session(change, caller, ended)


@of_users.get("/{user_id}/sessions", response_model=list[Session])
async def list_user_sessions(
    caller: AdminReader, user: LoadedUser, session: DatabaseSession, window: Window, response: Response
) -> object:
    """Returns a user's open sessions, by default all of them, newest first. The header `X-Total-Count` is the number of
    all open sessions of the user, regardless of `limit` and `offset`."""
    return service.to_shown(await windowed(session, open_sessions(user.id), window, response), caller)


@of_users.delete("/{user_id}/sessions", status_code=204)
async def end_user_sessions(caller: AdminStepUp, user: LoadedUser, change: Changing) -> None:
    """Ends all sessions of a user. When the response is sent, their tokens are refused. API keys stay valid."""
    await service.end_users_sessions(change, caller, user)


@of_users.delete("/{user_id}/sessions/{session_id}", status_code=204)
async def end_user_session(caller: AdminStepUp, user: LoadedUser, ended: LoadedSession, change: Changing) -> None:
    """Ends one session of a user. When the response is sent, its tokens are refused."""
    await service.end_users_session(change, caller, user, ended)
