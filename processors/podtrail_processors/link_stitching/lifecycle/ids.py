"""Ids of a lifecycle: whoever writes it, and whenever, writes the same."""

import re
from hashlib import blake2b
from typing import Final

_UUID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_ROOT: Final = "PodLifecycle"


def trace_id_of(uid: str) -> bytes:
    """Return the trace id of a Pod's life: the Pod's uid itself, without its hyphens, where that is a UUID."""
    found = _UUID.fullmatch(uid)
    plain = bytes.fromhex("".join(found.groups())) if found else b""
    return plain if any(plain) else blake2b(uid.encode(), digest_size=16).digest()


def root_id_of(uid: str) -> bytes:
    """Return the id of the root span of a Pod's life."""
    return part_id_of(uid, _ROOT, b"")


def part_id_of(uid: str, kind: str, which: bytes) -> bytes:
    """Return the id of a part's span; `which` tells parts of one kind apart."""
    return blake2b(f"{uid}/{kind}/".encode() + which, digest_size=8).digest()
