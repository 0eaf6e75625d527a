"""Pages drawn part by part: a long one keeps the receivers' loop no longer than one of its parts takes."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from aiohttp import web

if TYPE_CHECKING:
    from jinja2 import Template

_PART: Final = 0.0015
"""Seconds of work, until others on the loop have their turn."""
_CHUNK: Final = 250
"""Of many that are looked through: so many at a time take a millisecond at most."""

_One = TypeVar("_One")


class PageWriter(Protocol):
    """Writes a page from its template."""

    async def __call__(self, template: str, context: Mapping[str, object], status: int = 200) -> web.Response:
        """Return the response."""


async def in_parts(template: "Template", context: Mapping[str, object]) -> str:
    """Return a template filled in. What it goes through must not change meanwhile: view models don't."""
    parts: list[str] = []
    began = time.perf_counter()
    for part in template.generate(context):
        parts.append(part)
        if time.perf_counter() - began >= _PART:
            await asyncio.sleep(0)
            began = time.perf_counter()
    return "".join(parts)


async def in_chunks(many: Iterable[_One]) -> AsyncIterator[Iterator[_One]]:
    """Yield them a few at a time, with others on the loop between."""
    rest = iter(many)
    for first in rest:
        yield _with_first(first, islice(rest, _CHUNK - 1))
        await asyncio.sleep(0)


def _with_first(first: _One, others: Iterator[_One]) -> Iterator[_One]:
    yield first
    yield from others
