"""Links and reports are copied for a ticket, in a real Chromium and by keys alone."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from podtrail_extensions.viewer.extension import Viewer

from podtrail.testing.attempts import no_room
from tests.extensions.browser import PROGRAM, browsing

Viewing = Callable[..., AbstractAsyncContextManager[tuple[Viewer, ClientSession]]]
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs chromium")


@pytest.mark.parametrize("clipboard", [True, False], ids=["clipboard", "selection"])
def test_a_report_is_copied_by_keys_alone(viewing: Viewing, tmp_path: Path, clipboard: bool) -> None:
    async def main() -> None:
        made = no_room()
        async with viewing(made.batch()) as (viewer, _), browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.allow("clipboardReadWrite", "clipboardSanitizedWrite")
            await browser.open(f"{viewer.page}pods/{made.uid}")
            if not clipboard:
                await browser.says("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
            await browser.says("document.querySelector('.share summary').focus()")
            await browser.press("Enter")
            await browser.until("document.querySelector('.share').open")
            await browser.says("document.querySelector('[data-copy-text]').focus()")
            await browser.press("Enter")
            await browser.until("document.querySelector('.share [role=status]').textContent !== ''")
            assert await browser.says("document.querySelector('.share [role=status]').textContent") == "Copied."
            assert await browser.says("document.activeElement.dataset.copyText") == f"/pods/{made.uid}/report.md"

    asyncio.run(main())


def test_without_a_script_there_are_links(viewing: Viewing, tmp_path: Path) -> None:
    async def main() -> None:
        made = no_room()
        async with viewing(made.batch()) as (viewer, _), browsing(tmp_path) as browser:
            await browser.look(width=380)
            await browser.script(runs=False)
            await browser.open(f"{viewer.page}pods/{made.uid}")
            await browser.says("document.querySelector('.share').open = true")
            shown = "[...document.querySelectorAll('.share button')].filter((one) => one.checkVisibility()).length"
            assert await browser.says(shown) == 0
            links = "[...document.querySelectorAll('.share a')].map((one) => one.getAttribute('href'))"
            assert f"/pods/{made.uid}/report.md" in await browser.says(links)

    asyncio.run(main())
