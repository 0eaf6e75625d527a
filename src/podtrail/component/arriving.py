"""What is on its way in and held by nobody yet."""

from dataclasses import dataclass


@dataclass(slots=True)
class IncomingBytes:
    """Bytes of requests, of all receivers of a house together, from the first one received or decompressed on."""

    bytes: int = 0
    """What is being received or waits for room now."""
    ever: int = 0
    """What has been received since the start."""
