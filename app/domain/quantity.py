"""Kubernetes quantities ("16Gi", "500m", "1e3"): text to Decimal and back.

Grammar and canonical form are those documented at `Quantity` in Kubernetes' apimachinery: the suffix is as large as it
can be without a fraction and without losing anything, 1.5 is "1500m", 1.5Gi is "1536Mi".
"""

import re
from decimal import ROUND_UP, Context, Decimal
from typing import Final

_GRAMMAR: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_LONGEST: Final = 64
"""Characters; far more than any real quantity has, few enough that a hostile one costs nothing."""

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

_MAX: Final = Decimal(2**63 - 1)
_STEP: Final = Decimal("1e-9")
_EXACT: Final = Context(prec=200)
"""Wide enough for every intermediate value: 64 digits of text times a factor of 19 digits, down to the step."""

_FARTHEST_EXPONENT: Final = 100
"""Any larger exponent ends at the cap, any smaller at the step, whatever the 64 characters before it say."""


def parse_quantity(text: str) -> Decimal:
    """The number a quantity stands for: cores, bytes or pieces.

    As Kubernetes does, what is too large becomes 2^63-1 and what is finer than 1n is rounded away from zero: whoever
    asks for something shall not end up with nothing.

    Raises:
        ValueError: it is not a quantity; the message shows it and an example of the right form.
    """
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"not a Kubernetes quantity: {text[:_LONGEST]!r} (right are for example 16Gi, 500m, 2, 1e3)")
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        value = _EXACT.multiply(number, Decimal(_BINARY[suffix]))
    else:
        exponent = int(match["exponent"] or _DECIMAL[suffix])
        exponent = max(-_FARTHEST_EXPONENT, min(_FARTHEST_EXPONENT, exponent))
        value = _EXACT.scaleb(number, exponent)
    if value.copy_abs() > _MAX:
        return _MAX.copy_sign(value)
    return _plain(value.quantize(_STEP, rounding=ROUND_UP, context=_EXACT))


def format_quantity(value: Decimal | int) -> str:
    """Canonical text with decimal suffixes, as kubelets write cores and pieces: "110", "31850m", "2k".

    Raises:
        ValueError: the value is finer than 1n or larger than 2^63-1.
    """
    exact = _checked(value)
    for suffix, exponent in reversed(_DECIMAL.items()):
        scaled = _EXACT.scaleb(exact, -exponent)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}" if exact else "0"
    raise ValueError(f"finer than a Kubernetes quantity can be: {value}")


def format_bytes(value: Decimal | int) -> str:
    """Canonical text with binary suffixes, as kubelets write memory and storage: "120Gi", "1536Mi".

    Raises:
        ValueError: the value is not a whole number of bytes, or larger than 2^63-1.
    """
    exact = _checked(value)
    if exact != exact.to_integral_value():
        raise ValueError(f"not a whole number of bytes: {value}")
    whole = int(exact)
    for suffix, factor in reversed(_BINARY.items()):
        if whole and whole % factor == 0:
            return f"{whole // factor}{suffix}"
    return str(whole)


def _checked(value: Decimal | int) -> Decimal:
    exact = Decimal(value)
    if not exact.is_finite() or exact.copy_abs() > _MAX:
        raise ValueError(f"beyond what a Kubernetes quantity can be: {value}")
    return exact


def _plain(value: Decimal) -> Decimal:
    """Without trailing zeros or an exponent, so that it also reads well when printed."""
    return Decimal(int(value)) if value == value.to_integral_value() else value.normalize(_EXACT)
