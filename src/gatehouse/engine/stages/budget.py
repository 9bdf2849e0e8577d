"""Money and quotas: refuses whose budget is spent, reserves before, settles after (decisions 7, Budgets)."""

from gatehouse.engine.exchange import Admitted, Answered, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict


async def check(x: Identified, ports: Ports) -> Verdict:
    if not _enforced(x):
        return ALLOW
    refused = ports.spend.exhausted(x.caller)
    return ALLOW if refused is None else Refuse(refused)


async def reserve(x: Admitted, ports: Ports) -> Verdict:
    if not _enforced(x.asked.identified):
        return ALLOW
    refused = await ports.spend.reserve(x)
    return ALLOW if refused is None else Refuse(refused)


async def settle(x: Answered, ports: Ports) -> None:
    """Whether enforced or not: what is spent is known when budgets hold again."""
    await ports.spend.settle(x)


def _enforced(x: Identified) -> bool:
    """The feature flag `budget_enforcement`."""
    return x.policy.feature_flags.get("budget_enforcement", True)
