"""No case from the field that once had a test has lost it."""

from .cases import covering, known

WITHOUT_TEST = {61, 62, 64}
"""Cases about what is not offered yet."""


def test_every_case_that_a_test_names_is_known() -> None:
    """A number means something."""
    assert set(covering()) - known() == set()


def test_every_other_case_has_a_test() -> None:
    """A test covers a case by naming it in its docstring."""
    assert known() - set(covering()) - WITHOUT_TEST == set()
