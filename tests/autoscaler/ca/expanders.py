"""Which of several groups to scale up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .client import NodeGroup, Provider
from .objects import Node, Pod
from .wire import NotOffered, RpcFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """So many nodes of a group would help these pods."""

    group: NodeGroup
    template: Node
    count: int
    pods: Sequence[Pod]


def choose(choices: Sequence[Choice], expander: str | tuple[str, ...], provider: Provider, now: datetime) -> Choice:
    """The best; the first of equals (the real one draws lots)."""
    if expander == "price":
        return _cheapest(choices, provider, now)
    if isinstance(expander, tuple):
        ranked = [choice for choice in choices if choice.group.id in expander]
        return min(ranked, key=lambda choice: expander.index(choice.group.id)) if ranked else choices[0]
    return choices[0]


def _cheapest(choices: Sequence[Choice], provider: Provider, now: datetime) -> Choice:
    """Price of the nodes over the least that their pods cost; who has no price is out, if all are out the first wins.

    The real one also weighs how unusual a node is; that only breaks near ties and never changes who has a price.
    """
    scored: list[tuple[float, int]] = []
    end = now + timedelta(hours=1)
    for index, choice in enumerate(choices):
        try:
            pods = sum(pod_price(provider, pod, now, end) for pod in choice.pods)
            nodes = node_price(provider, choice.template, now, end) * choice.count
        except (RpcFailed, NotOffered):
            continue
        scored.append((nodes / pods, index))
    return choices[min(scored)[1]] if scored else choices[0]


def node_price(provider: Provider, node: Node, start: datetime, end: datetime) -> float:
    """Price of a node over a period. Raises: RpcFailed, NotOffered."""
    messages = provider.messages
    data = provider.send_optional("PricingNodePrice", "", messages.node_price_request(node, start, end))
    return float(messages.response("PricingNodePrice", data).price)


def pod_price(provider: Provider, pod: Pod, start: datetime, end: datetime) -> float:
    """The least that a pod costs over a period. Raises: RpcFailed, NotOffered."""
    messages = provider.messages
    data = provider.send_optional("PricingPodPrice", "", messages.pod_price_request(pod, start, end))
    return float(messages.response("PricingPodPrice", data).price)
