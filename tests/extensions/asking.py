"""How tests ask a viewer of its own for pages; `viewing` is the fixture of conftest.py."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from aiohttp import ClientSession
from podtrail_extensions.viewer.extension import Viewer

from podtrail.otlp import Batch

Viewing = Callable[..., AbstractAsyncContextManager[tuple[Viewer, ClientSession]]]


def get(viewing: Viewing, path: str, *batches: Batch, status: int = 200) -> str:
    """Return what a viewer that took these batches answers."""
    (page,) = pages(viewing, batches, path, status=status)
    return page


def pages(viewing: Viewing, batches: Sequence[Batch], *paths: str, status: int = 200) -> list[str]:
    """Return its answers about several paths."""

    async def main() -> list[str]:
        found = []
        async with viewing(*batches) as (_, browser):
            for path in paths:
                async with browser.get(path) as answer:
                    text = await answer.text()
                    assert answer.status == status, (path, text)
                    found.append(text)
        return found

    return asyncio.run(main())
