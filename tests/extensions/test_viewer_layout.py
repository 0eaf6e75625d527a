"""In a real browser no page scrolls sideways, however long names are and however narrow the screen is."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from podtrail_extensions.viewer.extension import Viewer

from tests.extensions.browser import PROGRAM, browsing
from tests.extensions.long_names import GATED, PAGES, batches

Viewing = Callable[..., AbstractAsyncContextManager[tuple[Viewer, ClientSession]]]
WIDTHS = (380, 768, 1280)
FOLDED = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="needs chromium")
def test_nothing_scrolls_sideways(viewing: Viewing, tmp_path: Path) -> None:
    async def main() -> list[tuple[str, int, str]]:
        found: list[tuple[str, int, str]] = []
        async with viewing(*batches()) as (viewer, _), viewing() as (empty, _), browsing(tmp_path) as browser:
            viewer.note(GATED)
            pages = {name: viewer.page.rstrip("/") + path for name, path in PAGES.items()}
            pages |= {"no spans": empty.page, "no decision yet": f"{empty.page}policies"}
            for width in WIDTHS:
                for dark in (False, True):
                    await browser.look(width=width, dark=dark)
                    for name, address in pages.items():
                        await browser.open(address)
                        assert await browser.says("innerWidth") == width
                        assert await browser.says("document.querySelector('header.top') !== null"), name
                        await browser.says(FOLDED)
                        found += [(name, width, what) for what in await browser.sideways()]
        return found

    assert asyncio.run(main()) == []
