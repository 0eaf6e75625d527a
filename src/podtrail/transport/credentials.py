"""Keeps credentials that a client has shown out of what is said of the answer: some servers repeat them."""

from collections.abc import Mapping
from typing import Final

from podtrail.config.secret_keys import REDACTED

_INSTEAD: Final = REDACTED.encode()


def withheld(answer: bytes, shown: Mapping[str, str]) -> bytes:
    """Return an answer without the values of the headers that were shown, and without what follows their scheme."""
    secrets = {part for value in shown.values() for part in (value, value.partition(" ")[2])} - {""}
    for secret in sorted(secrets, key=len, reverse=True):  # the longest first: a part would leave the rest of it
        answer = answer.replace(secret.encode(), _INSTEAD)
    return answer
