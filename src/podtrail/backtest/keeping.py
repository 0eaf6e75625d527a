"""What is to be kept whatever the rest, as people write it: `failed`, `p99 latency`, `slower than 1s`."""

import re
from collections.abc import Iterable
from typing import Final

from podtrail.backtest.proposal import KeepWish
from podtrail.config.types import parse_duration

_QUANTILE: Final = re.compile(r"p([0-9]{1,2}(?:\.[0-9]+)?)(?: latency)?(?: and slower)?")
_SLOWER: Final = re.compile(r"slower than (\S+)")
_EXAMPLES: Final = 'write failed, "p99 latency" or "slower than 1s"'


def parse_wish(texts: Iterable[str]) -> KeepWish:
    """Return what several wishes come to.

    Raises:
        ValueError: one is not understood, or two are about how slow.
    """
    wish = KeepWish(failed=False)
    for text in texts:
        words = " ".join(text.lower().split())
        if words == "failed":
            wish = wish._replace(failed=True)
            continue
        if wish.quantile is not None or wish.threshold is not None:
            raise ValueError(f"{text!r}: how slow is kept is said already")
        if (found := _QUANTILE.fullmatch(words)) and float(found[1]) > 0:
            wish = wish._replace(quantile=float(found[1]) / 100)
        elif found := _SLOWER.fullmatch(words):
            wish = wish._replace(threshold=_positive(found[1]))
        else:
            raise ValueError(f"{text!r} is not understood: {_EXAMPLES}")
    return wish


def _positive(text: str) -> int:
    threshold = parse_duration(text)
    if threshold <= 0:
        raise ValueError(f"{text!r} is no length of time: {_EXAMPLES}")
    return threshold
