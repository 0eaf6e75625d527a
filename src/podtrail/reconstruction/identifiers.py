"""Ids that follow from whose attempt it is and which: two replicas, or a second reading, tell the same story once."""

from hashlib import blake2b

from podtrail.reconstruction.draft import Identity


def trace_id(key: str, number: int) -> bytes:
    """Return the trace id of a Pod's attempt; `key` is its uid, or its name where that is not known."""
    return blake2b(f"{key}/{number}".encode(), digest_size=16).digest()


def span_id(trace: bytes, place: str) -> bytes:
    """Return the id of the span at a place in a trace: the names from the root to it."""
    return blake2b(trace + place.encode(), digest_size=8).digest()


def trace_of(identity: Identity) -> bytes:
    """Return the trace id of an attempt."""
    return trace_id(identity.key, identity.number)
