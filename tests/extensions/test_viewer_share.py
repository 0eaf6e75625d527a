"""Links and reports are copied for a ticket, in a real Chromium and by keys alone."""

import pytest

from podtrail.testing.attempts import no_room
from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse


@pytest.mark.parametrize("clipboard", [True, False], ids=["clipboard", "selection"])
async def test_a_report_is_copied_by_keys_alone(viewing: Viewing, browse: Browse, clipboard: bool) -> None:
    made = no_room()
    async with viewing(made.batch()) as (viewer, _), browse() as browser:
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


async def test_without_a_script_there_are_links(viewing: Viewing, browse: Browse) -> None:
    made = no_room()
    async with viewing(made.batch()) as (viewer, _), browse() as browser:
        await browser.look(width=380)
        await browser.script(runs=False)
        await browser.open(f"{viewer.page}pods/{made.uid}")
        await browser.says("document.querySelector('.share').open = true")
        shown = "[...document.querySelectorAll('.share button')].filter((one) => one.checkVisibility()).length"
        assert await browser.says(shown) == 0
        links = "[...document.querySelectorAll('.share a')].map((one) => one.getAttribute('href'))"
        assert f"/pods/{made.uid}/report.md" in await browser.says(links)
