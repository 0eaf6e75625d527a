"""Kubernetes resource quantities ("500m", "1Gi") as integers in the unit that the scheduler counts in."""

import re
from collections.abc import Mapping
from fractions import Fraction

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([a-zA-Z]*)(?:[eE]([+-]?\d{1,2}))?")


def parse_quantity(text: str | float) -> Fraction:
    """The exact value of a quantity; ValueError names what is wrong with it."""
    match = _QUANTITY.fullmatch(str(text).strip())
    suffix = match[2] if match else ""
    exponent = match[3] if match else None
    if match and suffix in ("e", "E") and exponent is None:
        match = None
    if match is None or suffix not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity; write a number with a suffix such as m, k, M, G, Ki, Mi or Gi")
    return Fraction(match[1]) * _SUFFIXES[suffix] * Fraction(10) ** int(exponent or 0)


def parse_resources(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    """Resource names to amounts: cpu in thousandths of a core, everything else in whole units (bytes), rounded up."""
    amounts = {}
    for name, text in quantities.items():
        value = parse_quantity(text) * (1000 if name == CPU else 1)
        amounts[name] = -(-value.numerator // value.denominator)
    return amounts
