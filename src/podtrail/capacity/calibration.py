"""How fast this machine is: a fixed piece of work, timed, against the time that it took where the figures are from.

The work is of the kind that podtrail does: slices of bytes, dictionaries by short keys, deflate, sorting.
"""

import statistics
import time
import zlib
from typing import Final

TURNS: Final = 40
_TRACES: Final = 256
_SPANS: Final = 4096
_SPAN: Final = 168


def turn() -> int:
    """Do the work once; return something that depends on all of it."""
    raw = b"".join((number * 2_654_435_761 % (1 << 32)).to_bytes(4, "big") for number in range(_SPANS * _SPAN // 4))
    traces: dict[bytes, list[bytes]] = {}
    for at in range(0, len(raw), _SPAN):
        span = raw[at : at + _SPAN]
        traces.setdefault(span[:1] + bytes(1), []).append(span)
    whole = sorted((b"".join(spans) for spans in traces.values()), key=len)
    return sum(len(zlib.compress(trace, 1)) for trace in whole[:_TRACES])


def turn_us(turns: int = TURNS) -> float:
    """Return the microseconds of CPU that a turn takes on this machine: the median."""
    took = []
    for _ in range(turns):
        began = time.process_time()
        turn()
        took.append(time.process_time() - began)
    return statistics.median(took) * 1e6
