"""Checks passwords without having to hash the same one for every request, nor many at once.

A good hash takes a tenth of a second of a core. What was found of a name and password is remembered by a keyed digest;
what is yet to be found is found in a thread, one after the other, and no client has more than a few wait.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from podtrail.component import Refused
from podtrail.lru import Lru
from podtrail_extensions.basicauth.htpasswd import Password

_REMEMBERED: Final = 10_000
_WAITING: Final = 64
_WAITING_OF_AN_ADDRESS: Final = 4
_RETRY_AFTER: Final = 1.0
"""Seconds after which a client is told to try again when too many passwords wait."""


class Verification:
    """Checks passwords of these users; made anew when they change, so that nothing of before is remembered."""

    def __init__(self, users: Mapping[str, Password]) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)
        self._found: Lru[bytes, bool] = Lru(_REMEMBERED)
        self._under_way: dict[bytes, asyncio.Task[bool]] = {}
        self._waiting: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    async def is_right(self, name: str, password: str, address: str) -> bool:
        """Tell whether this is that user's password.

        Raises:
            Refused: too many wait to be checked, of all clients or of this address.
        """
        user = self._users.get(name)
        if user is not None and not user.slow:
            return user.matches(password)
        digest = blake2b(f"{len(name)}:{name}{password}".encode(errors="replace"), key=self._key).digest()
        known = self._found.get(digest)
        if known is not None:
            self._found.move_to_end(digest)
            return known
        return await asyncio.shield(self._under_way.get(digest) or self._start(digest, name, password, address))

    def _start(self, digest: bytes, name: str, password: str, address: str) -> "asyncio.Task[bool]":
        if self._waiting[address] >= _WAITING_OF_AN_ADDRESS or self._waiting.total() >= _WAITING:
            raise Refused("too many passwords are being checked", after=_RETRY_AFTER)
        self._waiting[address] += 1
        task = asyncio.create_task(self._check(digest, name, password, address))
        self._under_way[digest] = task
        return task

    async def _check(self, digest: bytes, name: str, password: str, address: str) -> bool:
        try:
            async with self._turn:
                right = await asyncio.to_thread(self._matches, name, password)
            self._found.put(digest, right)
            return right
        finally:
            del self._under_way[digest]
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]

    def _matches(self, name: str, password: str) -> bool:
        """Compare; for a user who is not there with somebody else's, so that it takes as long."""
        user = self._users.get(name)
        if user is not None:
            return user.matches(password)
        for other in self._users.values():
            if other.slow:
                other.matches(password)
                break
        return False
