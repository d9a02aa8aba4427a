"""F36, F39: what real nodes have taught is where people look: `groups`, metrics, the dashboard."""

from datetime import timedelta

from app.web.book_metrics import book_metrics
from app.web.view import group_rows
from tests.cli.prompt import answer, typed

from .yard import Yard

REAL = {"cpu": "31500m", "memory": "150Gi", "ephemeral-storage": "36Gi", "pods": "55", "nvidia.com/gpu": "1"}


def ratios(yard: Yard) -> dict[str, float]:
    """The learned share of the computed template, by resource, for h100."""
    families = book_metrics(yard.house.ledger, yard.house.now)
    (learned,) = [family for family in families if family.name == "verda_ca_template_learned_ratio"]
    return {
        sample.labels["resource"]: sample.value for sample in learned.samples if sample.labels["node_group"] == "h100"
    }


def test_a_learned_template_is_shown_and_survives_a_restart(yard: Yard) -> None:
    """Half the pods that had been promised; the other group, of the same kind, follows too."""
    database = str(yard.house.path)
    (before, _) = answer("groups", "--database", database)
    assert (before["template_from"], before["learned"]) == (None, None)
    assert ratios(yard) == {}
    (name,) = yard.house.running()
    yard.join(name, capacity=REAL, allocatable=REAL)
    yard.tend()
    yard.house.clock.advance(timedelta(minutes=1))
    yard.tend()
    for _ in range(2):
        rows = answer("groups", "--database", database)
        assert [(row["node_group"], row["template_from"]) for row in rows] == [("h100", name), ("spot", name)]
        assert rows[0]["learned"] == REAL
        assert ratios(yard)["pods"] == 0.5
        assert ratios(yard)["nvidia.com/gpu"] == 1
        assert [row.notes for row in group_rows(yard.house.books)] == [[f"its template follows node {name}"]] * 2
        yard.restart()
    assert name in typed("groups", "--database", database)
