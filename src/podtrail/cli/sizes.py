"""Sizes in bytes as people write them."""

import re

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)\s*([a-zA-Z]*)")
_SHOWN = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_size(text: str) -> int:
    """Return the bytes that `500MiB`, `1.5GB` or `100000` mean.

    Raises:
        ValueError: it is anything else, or nothing.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or found[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size: write for example 500MiB or 1.5GB")
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    if not size:
        raise ValueError("must be more than nothing")
    return size


def format_size(size: int) -> str:
    """Return bytes in the unit that suits them: `3.4 MiB`."""
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_SHOWN) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:,.1f} {_SHOWN[unit]}" if unit else f"{size} B"
