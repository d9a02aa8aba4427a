"""Alert rules and dashboard speak of metrics, labels and values that the server has."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import promql_parser
import pytest
import yaml

from app.cli.metrics_page import descriptions
from app.cloud.verda.calls import Outcome
from app.domain.instance.events import FailureCode
from app.domain.instance.lifecycle import InstanceState
from app.domain.registry import EVENT_TYPES

from .rendered import CHART, KUSTOMIZE, PRODUCTION, chart, kustomization, one

MONITORING = KUSTOMIZE / "components" / "monitoring"
RULES: Sequence[dict[str, Any]] = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())["spec"]["groups"][0][
    "rules"
]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
TARGETS = frozenset({"instance", "job", "namespace", "pod"})
"""Labels that Prometheus adds to every series."""

SERIES = {
    name: frozenset(d.labels) | extra
    for d in descriptions()
    for name, extra in (
        [(f"{d.name}_bucket", {"le"}), (f"{d.name}_sum", set()), (f"{d.name}_count", set())]
        if d.kind == "histogram"
        else [(d.name, set())]
    )
}
"""Series → its labels."""

CLOSED = {
    "state": {str(state) for state in InstanceState if not state.is_ended},
    "type": set(EVENT_TYPES),
    "operation": {"list_instances", "instance_types"},
    "outcome": {str(outcome) for outcome in Outcome} | {"store", "error"},
}
"""Label → the values it can have."""

REMARKS = frozenset(FailureCode) | {
    *("cloud-unreachable", "machine-stopped", "paused", "unknown-instance-type", "unknown-status"),
    *("withdrawn-instance-type", "join-token-ends"),
}
"""Codes of `verda_ca_remarks`."""


def expressions() -> Iterator[tuple[str, str]]:
    """Every query with where it stands; Grafana's variables replaced by what it would put in."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m").replace("$node_group", ".*")
            yield f"panel {panel['title']!r}", text
    for annotation in DASHBOARD["annotations"]["list"]:
        yield f"annotation {annotation['name']!r}", annotation["expr"]


def parts(expression: str) -> list[Any]:
    """Every node of a query's syntax tree."""
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(expression), pre_visit=found.append)
    return found


def selected(expression: str) -> list[promql_parser.VectorSelector]:
    """Every selection of series in a query."""
    return [node for node in parts(expression) if isinstance(node, promql_parser.VectorSelector)]


def unheard_of(pattern: str, values: Iterable[str]) -> list[str]:
    """The alternatives of a matcher that nothing is ever called."""
    alternatives = [pattern] if "(" in pattern else pattern.split("|")
    return [one for one in alternatives if not any(re.fullmatch(one, value) for value in values)]


def complaints(expression: str) -> list[str]:
    """What the server could never answer."""
    selectors = [(selector.name or "", selector) for selector in selected(expression)]
    wrong = [f"no series {name}" for name, _ in selectors if name not in SERIES]
    known = [(name, selector) for name, selector in selectors if name in SERIES]
    labels = frozenset[str]().union(*(SERIES[name] for name, _ in known)) | TARGETS
    for name, selector in known:
        for matcher in selector.matchers.matchers:
            if matcher.name not in SERIES[name] | TARGETS:
                wrong.append(f"{name} has no label {matcher.name}")
                continue
            values = REMARKS if name == "verda_ca_remarks" else CLOSED.get(matcher.name)
            if values is not None:
                wrong.extend(f"{matcher.name} is never {value}" for value in unheard_of(matcher.value, values))
    for node in parts(expression):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            wrong += [f"nothing to group by {label}" for label in node.modifier.labels if label not in labels]
    return wrong


QUERIES = tuple(expressions())


@pytest.mark.parametrize(("where", "expression"), QUERIES, ids=[where for where, _ in QUERIES])
def test_queries_are_answerable(where: str, expression: str) -> None:
    """A rule that names a missing metric never fires, and nobody would notice."""
    assert complaints(expression) == [], where


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("verda_ca_redy == 0", "no series verda_ca_redy"),
        ("rate(verda_ca_rpc_duration_seconds[5m])", "no series verda_ca_rpc_duration_seconds"),
        ('verda_ca_instances{status="running"}', "verda_ca_instances has no label status"),
        ('verda_ca_instances{state="upcoming"}', "state is never upcoming"),
        ("sum by (group) (verda_ca_target_size_nodes)", "nothing to group by group"),
        ('verda_ca_events_total{type="instance.evicted"}', "type is never instance.evicted"),
        ('verda_ca_remarks{code=~"forbidden|poor"}', "code is never poor"),
    ],
)
def test_unanswerable_queries_are_noticed(expression: str, complaint: str) -> None:
    """The check above can fail."""
    assert complaints(expression) == [complaint]


def test_every_alert_is_fit_for_a_pager() -> None:
    """A severity, a sentence each for what and so what, and labels in the text that the result has."""
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 29
    for rule in RULES:
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}
        text = " ".join(rule["annotations"].values())
        labels = frozenset[str]().union(*(SERIES[selector.name or ""] for selector in selected(rule["expr"])))
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels


def test_dashboard_is_whole() -> None:
    """Ids are unique, panels do not overlap, every panel has a query, the variables are those that queries use."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["targets"]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(panels))) - {"__rate_interval"}
    assert used == {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "node_group"}


def test_chart_brings_the_same_rules_and_dashboard() -> None:
    """One source for both ways to install."""
    values = {"cluster_name": "prod", "node_groups": {}}
    ours = chart({"config": values, "prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}})
    theirs = kustomization(PRODUCTION)
    assert one(ours, "PrometheusRule")["spec"] == one(theirs, "PrometheusRule")["spec"]
    name = "verda-cloud-provider-dashboard"
    ours_text, theirs_text = (one(m, "ConfigMap", name)["data"]["dashboard.json"] for m in (ours, theirs))
    assert json.loads(ours_text) == json.loads(theirs_text) == DASHBOARD
    assert one(ours, "ConfigMap", name)["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert one(theirs, "ConfigMap", name)["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert all((CHART / "files" / file).is_symlink() for file in ("prometheusrule.yaml", "dashboard.json"))
