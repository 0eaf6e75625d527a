"""Ids that follow from whose attempt it is and which: two replicas, or a second reading, tell the same story once."""

from hashlib import blake2b


def trace_id(key: str, which: str) -> bytes:
    """Return the trace id of a Pod's attempt.

    `key` is the Pod's uid, or its name where that is not known. `which` is the attempt's number where that is certain,
    else the moment at which it ended: whoever begins to read later counts otherwise, but reads the same moment.
    """
    return blake2b(f"{key}/{which}".encode(), digest_size=16).digest()


def span_id(trace: bytes, place: str) -> bytes:
    """Return the id of the span at a place in a trace: the names from the root to it."""
    return blake2b(trace + place.encode(), digest_size=8).digest()
