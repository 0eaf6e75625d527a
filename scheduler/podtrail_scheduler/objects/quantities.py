"""Kubernetes resource quantities ("500m", "1Gi") as integers in the unit that the scheduler counts in."""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
HUGE_PAGES = "hugepages-"
ATTACHABLE_VOLUMES = "attachable-volumes-"
DEVICE_CLASSES = "deviceclass.resource.kubernetes.io/"
"""With the name of a DeviceClass behind it: the extended resource that each class stands for without saying so."""
NANO = 10**9

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([a-zA-Z]*))")


def parse_quantity(text: str | float) -> Fraction:
    """The exact value of a quantity.

    Raises:
        ValueError: it is none; the text says what would be.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    exponent, suffix = match.group(2, 3) if match else (None, None)
    suffix = suffix or ""
    if match is None or suffix not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity; write a number with a suffix such as m, k, M, G, Ki, Mi or Gi")
    return Fraction(match[1]) * _SUFFIXES[suffix] * Fraction(10) ** int(exponent or 0)


def parse_resources(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    """Resource names to amounts: cpu in thousandths of a core, everything else in whole units (bytes), rounded up."""
    return {name: amount(name, nano_units(text)) for name, text in quantities.items()}


@lru_cache(maxsize=8192)
def nano_units(text: str | float) -> int:
    """A quantity in billionths, the finest that Kubernetes keeps, rounded up: sums of these are exact."""
    value = parse_quantity(text) * NANO
    return -(-value.numerator // value.denominator)


def amount(name: str, billionths: int) -> int:
    """What `billionths` of the resource `name` count as: thousandths for cpu, else whole units, rounded up."""
    return -(-billionths // 1_000_000) if name == CPU else -(-billionths // NANO)


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Whether `name` is an extended resource: of a domain that is not Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


@lru_cache(maxsize=1024)
def may_be_devices(name: str) -> bool:
    """Whether a DeviceClass may stand for the resource `name`."""
    return is_extended(name) or name.startswith(DEVICE_CLASSES)


@lru_cache(maxsize=1024)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts `name` besides cpu, memory, ephemeral storage and Pods."""
    return is_extended(name) or name.startswith((HUGE_PAGES, ATTACHABLE_VOLUMES)) or "kubernetes.io/" in name


@lru_cache(maxsize=1024)
def is_counted(name: str) -> bool:
    """Whether requests and room of the resource `name` matter to the scheduler at all."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)
