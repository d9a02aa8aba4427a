from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.quantity import format_bytes, format_quantity, parse_quantity

LARGEST = 9223372036854775807


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("8", "8"),
        ("500m", "0.5"),
        ("16Gi", "17179869184"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("2k", "2000"),
        ("1E", "1000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("1.5Gi", "1610612736"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+3", "3"),
        ("-250m", "-0.25"),
        ("100u", "0.0001"),
        ("7n", "0.000000007"),
        ("12e-1", "1.2"),
        ("00012", "12"),
        ("0.5Ki", "512"),
    ],
)
def test_every_form_of_the_grammar_is_read(text: str, value: str) -> None:
    """Kubernetes documents three families of suffixes: binary, decimal and exponents."""
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "16GB",
        "16gi",
        "16 Gi",
        "Gi",
        "1.2.3",
        "1e",
        "1e1.5",
        "--1",
        "0x10",
        "1_000",
        "NaN",
        "inf",
        "\u0661",
        "1Gi\n",
    ],
)
def test_what_is_not_a_quantity_is_refused_by_name(text: str) -> None:
    """`16GB` is the commonest slip; the message must show it and the right form."""
    with pytest.raises(ValueError, match=r"not a Kubernetes quantity.*16Gi"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["9" * 65, "1e" + "0" * 70])
def test_absurdly_long_text_is_refused(text: str) -> None:
    """Pod bytes come from the network: nothing may grow with what a stranger writes."""
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    "text", ["10E", "1e99999999", "9223372036854775807.00000000001", "9223372036854775808", "8Ei", "9" * 60 + "Ei"]
)
def test_too_large_becomes_the_largest(text: str) -> None:
    """Kubernetes caps at 2^63-1 instead of refusing."""
    assert parse_quantity(text) == LARGEST
    assert parse_quantity(f"-{text}") == -LARGEST


@pytest.mark.parametrize("text", ["0.1n", "1e-99999999", "0.0000000001"])
def test_too_fine_becomes_the_finest(text: str) -> None:
    """Kubernetes rounds up: whoever asks for something gets something."""
    assert parse_quantity(text) == Decimal("1e-9")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (8, "8"),
        (110, "110"),
        (2000, "2k"),
        (1500, "1500"),
        (Decimal("1.5"), "1500m"),
        (Decimal("31.85"), "31850m"),
        (Decimal("0.0001"), "100u"),
        (Decimal("-0.5"), "-500m"),
        (Decimal("1E+3"), "1k"),
        (LARGEST, "9223372036854775807"),
    ],
)
def test_decimal_suffixes_are_canonical(value: Decimal | int, text: str) -> None:
    """The largest suffix that leaves no fraction, as the API server itself writes it."""
    assert format_quantity(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1000, "1000"),
        (1024, "1Ki"),
        (1610612736, "1536Mi"),
        (128 * 2**30, "128Gi"),
        (Decimal(2**40), "1Ti"),
        (-2048, "-2Ki"),
    ],
)
def test_binary_suffixes_are_canonical(value: Decimal | int, text: str) -> None:
    """1.5Gi is written 1536Mi."""
    assert format_bytes(value) == text


@pytest.mark.parametrize("value", [Decimal("1e-10"), LARGEST + 1, Decimal("NaN"), Decimal("Infinity")])
def test_numbers_no_quantity_can_hold_are_refused(value: Decimal | int) -> None:
    """Silently rounding capacity would be a lie told to the scheduler."""
    with pytest.raises(ValueError, match="Kubernetes quantity"):
        format_quantity(value)


def test_half_a_byte_is_refused() -> None:
    """Memory is whole bytes."""
    with pytest.raises(ValueError, match="whole number of bytes"):
        format_bytes(Decimal("0.5"))


@given(st.decimals(min_value=-LARGEST, max_value=LARGEST, places=9))
def test_decimal_text_reads_back_as_the_same_number(value: Decimal) -> None:
    """Nothing is lost on the way through text."""
    assert parse_quantity(format_quantity(value)) == value


@given(st.integers(min_value=-LARGEST, max_value=LARGEST))
def test_binary_text_reads_back_as_the_same_number(value: int) -> None:
    """Nothing is lost on the way through text."""
    assert parse_quantity(format_bytes(value)) == value


@given(st.text(max_size=80))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    """No other exception may escape, whatever a pod carries."""
    try:
        value = parse_quantity(text)
    except ValueError:
        return
    assert abs(value) <= LARGEST
