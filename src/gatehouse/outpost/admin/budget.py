"""Reads and sets the outpost's own monthly budget (docs/outposts.md, "Budgets")."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Final, Literal

from fastapi import APIRouter
from pydantic import AfterValidator, Field, PlainSerializer, model_validator

from gatehouse.foundation.clock import iso
from gatehouse.foundation.http.bodies import Body, Moment, ResponseBody
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.admin.recording import Recorder
from gatehouse.outpost.admin.versions import Changing, version_of
from gatehouse.outpost.host import OutpostHost, shown_budget
from gatehouse.outpost.money.accounts import Status
from gatehouse.outpost.platform_link.peers import Peer
from gatehouse.outpost.state import BudgetSet
from gatehouse.policy.budgets import NANO

router = APIRouter(tags=["Budget"])

_BUDGET: Final = [version_of(lambda state: state.budget)]

ShownUsd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


def _future_time(end: datetime) -> datetime:
    end = end if end.tzinfo else end.replace(tzinfo=UTC)
    if end <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return end


class Budget(Body):
    """Replaces the whole budget. A limit that is null or omitted does not apply."""

    monthly_usd: Annotated[
        Decimal | None,
        Field(ge=0, le=1_000_000_000, decimal_places=9, strict=False, allow_inf_nan=False, examples=[250]),
    ] = None
    monthly_requests: Annotated[int | None, Field(ge=0, le=1_000_000_000_000_000, examples=[100_000])] = None
    expires_at: Annotated[
        Annotated[Moment, AfterValidator(_future_time)] | None,
        Field(description="From this time on, calls are 429 `budget_exceeded` until the budget is set again."),
    ] = None

    @model_validator(mode="after")
    def _require_one_field(self) -> "Budget":
        if not self.model_fields_set:
            raise ValueError("needs monthly_usd, monthly_requests or expires_at; null removes a limit")
        return self


class PeerState(ResponseBody):
    address: str
    outpost_id: str | None
    heard_at: str | None
    fault: Annotated[str | None, Field(description="Why the peer does not respond; null if it responds.")]
    spent_usd: ShownUsd
    spent_requests: int


class BudgetState(ResponseBody):
    monthly_usd: ShownUsd | None
    monthly_requests: int | None
    expires_at: str | None
    source: Annotated[
        Literal["settings", "operator"],
        Field(description="`operator` means that this API set the budget. The settings then have no effect."),
    ]
    ignored_settings: Annotated[
        list[str],
        Field(
            description="Settings that have no effect while the source is `operator`.",
            examples=[["BUDGET_MONTHLY_USD"]],
        ),
    ]
    status: Annotated[Status | None, Field(description="Null without a budget. `warning`: 80 percent have been spent.")]
    began_at: str
    ends_at: str
    share_usd: Annotated[ShownUsd | None, Field(description="The part of the budget that this outpost may spend.")]
    share_requests: int | None
    spent_usd: Annotated[ShownUsd, Field(description="Spent by this outpost, and reserved for its running calls.")]
    spent_requests: int
    peers: list[PeerState]


@router.get("/admin/api/budget", response_model=BudgetState, dependencies=_BUDGET)
async def read_budget(host: AuthorizedHost) -> BudgetState:
    return budget_state(host)


def budget_state(host: OutpostHost) -> BudgetState:
    spend = host.spend
    budget, month = spend.set, spend.month()
    share = spend.share(month.start)
    spent = spend.spent(month.start)
    return BudgetState(
        monthly_usd=budget.usd,
        monthly_requests=budget.requests,
        expires_at=None if budget.expires_at is None else iso(budget.expires_at),
        source="settings" if host.state.current.budget is None else "operator",
        ignored_settings=_ignored_settings(host),
        status=spend.status(),
        began_at=iso(month.start),
        ends_at=iso(month.end),
        share_usd=None if share[0] is None else _usd(share[0]),
        share_requests=share[1],
        spent_usd=_usd(spent[0]),
        spent_requests=spent[1],
        peers=[_peer(peer, month.start) for peer in host.peers.all],
    )


@router.put("/admin/api/budget", response_model=BudgetState, dependencies=_BUDGET)
async def set_budget(host: AuthorizedHost, change: Changing, recorder: Recorder, body: Budget) -> BudgetState:
    """Sets the outpost's monthly budget. It applies to every request that arrives after this response. Set the same
    budget at all peers: each outpost divides its own."""
    end = body.expires_at
    budget = BudgetSet(
        usd=body.monthly_usd, requests=body.monthly_requests, expires_at=None if end is None else end.timestamp()
    )
    await host.set_budget(budget)
    await recorder.record("budget", **shown_budget(budget))
    return budget_state(host)


def _ignored_settings(host: OutpostHost) -> list[str]:
    if host.state.current.budget is None:
        return []
    settings = {
        "BUDGET_MONTHLY_USD": host.settings.budget_monthly_usd,
        "BUDGET_MONTHLY_REQUESTS": host.settings.budget_monthly_requests,
    }
    return [name for name, value in settings.items() if value is not None]


def _peer(peer: Peer, start: int) -> PeerState:
    spent = peer.message.spent if peer.message is not None and peer.message.month == start else (0, 0)
    return PeerState(
        address=peer.address,
        outpost_id=None if peer.message is None else str(peer.message.id),
        heard_at=None if peer.heard_at is None else iso(peer.heard_at),
        fault=peer.fault,
        spent_usd=_usd(spent[0]),
        spent_requests=spent[1],
    )


def _usd(amount: int) -> Decimal:
    return Decimal(amount) / NANO
