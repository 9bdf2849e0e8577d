"""Orders the deployments of an alias for one request: the first choice, then those that are tried if it fails.

Deployments that rest (open circuit, cooldown, unhealthy provider) and full ones come last. They are not left out, so
that a request is tried even if all deployments rest.

Shares are exact among the requests of one use (`AliasUse`): with every request, each deployment gains its share of one
turn, and the chosen one pays a whole turn (smooth weighted round-robin). So the number of requests of a deployment
deviates from its share by a few at most.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from gatehouse.engine.routing.deployments.affinity import by_affinity
from gatehouse.engine.routing.deployments.load import AliasUse, DeploymentLoad
from gatehouse.policy.aliases import Alias, Deployment

#: Latencies up to this multiple of the lowest one are regarded as equal to it. Medians are exact to five percent.
_EQUAL_LATENCY: Final = 1.1


class OrderView(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of an order in addition to the alias. `medians` maps a catalog entry's id, as an integer, to its
    median latency in milliseconds. `may_try` returns whether a deployment of unknown latency may be measured now. If
    `trial` is true, no state is changed."""

    load: Callable[[Deployment], DeploymentLoad]
    rests: Callable[[Deployment], bool]
    is_full: Callable[[Deployment], bool]
    medians: Mapping[int, float]
    may_try: Callable[[Deployment], bool]
    use: AliasUse = "named"
    #: key of the conversation if the alias is sticky and the call is part of one
    conversation: bytes | None = None
    trial: bool = False


def ordered(alias: Alias, deployments: Sequence[Deployment], view: OrderView) -> list[Deployment]:
    """Return the deployments in the order in which they are tried. The argument has deployments of the alias, sorted by
    tier."""
    if len(deployments) < 2:
        return list(deployments)
    # Full deployments come after resting ones, because an attempt at them is refused for certain.
    ranks: dict[tuple[int, int], list[Deployment]] = {}
    for deployment in deployments:
        rest = 2 if view.is_full(deployment) else 1 if view.rests(deployment) else 0
        ranks.setdefault((rest, deployment.tier), []).append(deployment)
    order: list[Deployment] = []
    for _, tier in sorted(ranks.items()):
        # Only the first choice of a request counts for the shares.
        order += _in_tier(alias, tier, view, counts=not order and not view.trial)
    return order


def _in_tier(alias: Alias, tier: Sequence[Deployment], view: OrderView, *, counts: bool) -> list[Deployment]:
    if view.conversation is not None:
        return by_affinity(tier, view.conversation)
    # Deployments with the weight zero only answer if all others of the tier fail.
    weighted = [deployment for deployment in tier if deployment.weight]
    spare = [deployment for deployment in tier if not deployment.weight]
    if alias.balance == "least_busy":
        return _by_load(weighted, view, counts=counts) + spare
    if alias.balance == "lowest_latency":
        return _by_latency(weighted, view, counts=counts) + spare
    return _by_turn(weighted, view, counts=counts) + spare


def _by_turn(tier: Sequence[Deployment], view: OrderView, *, counts: bool) -> list[Deployment]:
    """Return the deployments in the order of their turns."""
    if len(tier) < 2:
        return list(tier)
    total = sum(deployment.weight for deployment in tier)
    turns = {deployment.key: view.load(deployment).turns[view.use] + deployment.weight / total for deployment in tier}
    order = sorted(tier, key=lambda deployment: (turns[deployment.key], deployment.weight), reverse=True)
    if counts:
        turns[order[0].key] -= 1.0
        for deployment in tier:
            view.load(deployment).turns[view.use] = turns[deployment.key]
    return order


def _by_load(tier: Sequence[Deployment], view: OrderView, *, counts: bool) -> list[Deployment]:
    """Return the deployments with the fewest requests in progress first, in proportion to their weights. Those with
    equally few come in the order of their turns."""
    if len(tier) < 2:
        return list(tier)
    busy = {deployment.key: view.load(deployment).in_flight / deployment.weight for deployment in tier}
    least = min(busy.values())
    first = [deployment for deployment in tier if busy[deployment.key] == least]
    others = [deployment for deployment in tier if busy[deployment.key] != least]
    others.sort(key=lambda deployment: busy[deployment.key])
    return _by_turn(first, view, counts=counts) + others


def _by_latency(tier: Sequence[Deployment], view: OrderView, *, counts: bool) -> list[Deployment]:
    """Return the deployments with the lowest median first. Deployments whose latency is close to the lowest share
    requests by their weights. At times a deployment of unknown latency comes first, so that it is measured."""
    medians = {deployment.key: view.medians.get(deployment.candidate.model.id.int) for deployment in tier}
    known = sorted((median, deployment.key) for deployment in tier if (median := medians[deployment.key]) is not None)
    if not known:
        return _by_turn(tier, view, counts=counts)
    bound = known[0][0] * _EQUAL_LATENCY
    fastest: list[Deployment] = []
    slower: list[Deployment] = []
    unknown: list[Deployment] = []
    for deployment in tier:
        median = medians[deployment.key]
        (unknown if median is None else fastest if median <= bound else slower).append(deployment)
    slower.sort(key=lambda deployment: medians[deployment.key] or 0.0)
    # Fallbacks and token counts do not measure a latency.
    if counts and view.use == "named":
        for deployment in unknown:
            if view.may_try(deployment):
                others = [item for item in unknown if item is not deployment]
                return [deployment, *_by_turn(fastest, view, counts=False), *slower, *others]
    return _by_turn(fastest, view, counts=counts) + slower + unknown
