"""The page of guarantees promises what tests prove, and leaves out nothing that the simulation holds."""

import ast
from pathlib import Path

from tests.simulation.promises import PROMISES as INVARIANTS

from .guarantees import PROMISES, ROOT, page

_DETAILS = {
    "a_decrease_is_seen_at_once",
    "a_refused_offering_is_used_up",
    "an_empty_catalogue_changes_nothing",
    "an_outage_is_over_and_still_in_the_books",
    "no_two_instances_share_a_machine",
    "nothing_breaks_off",
    "nothing_is_cancelled_in_flight",
    "provider_ids_stay",
    "retired_groups_only_shrink",
    "running_does_not_lead_back",
    "the_log_has_no_gaps_and_no_backward_times",
    "work_waits_for_something",
}
"""Invariants that are means to an end, and no promise of their own."""


def _proofs() -> set[str]:
    return {proof for promises in PROMISES.values() for promise in promises for proof in promise.proofs}


def test_page_of_guarantees_is_what_the_proofs_say() -> None:
    """`python -m tests.docs.guarantees > docs/guarantees.md` makes it anew."""
    assert (ROOT / "docs" / "guarantees.md").read_text() == page()


def test_every_proof_exists() -> None:
    """An invariant that stories are held to, or a test."""
    for proof in _proofs():
        path, _, name = proof.partition("::")
        if name:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, proof
        else:
            assert proof in INVARIANTS


def test_every_invariant_is_a_promise_or_a_detail() -> None:
    """Nothing is held in secret."""
    assert set(INVARIANTS) - _proofs() == _DETAILS


def test_links_lead_somewhere() -> None:
    """From where the page is."""
    docs = ROOT / "docs"
    links = [part.partition(")")[0] for part in page().split("](")[1:]]
    assert [link for link in links if not Path(docs / link).resolve().is_file()] == []
