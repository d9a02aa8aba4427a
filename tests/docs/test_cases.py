"""Every case from the field has its tests, and the page of them is what they say."""

from .cases import ROOT, covering, known, page


def test_every_case_that_a_test_names_is_known() -> None:
    """A number means something."""
    assert set(covering()) - known() == set()


def test_every_case_has_a_test() -> None:
    """A test covers a case by naming it in its docstring."""
    assert known() - set(covering()) == set()


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.docs.cases > docs/field-cases.md` makes it."""
    assert (ROOT / "docs" / "field-cases.md").read_text(encoding="utf-8") == page()
