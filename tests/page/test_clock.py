"""What `./dev run` simulates ends, and its clock with it."""

import asyncio
from pathlib import Path

import pytest

from tests.extensions.browser import PROGRAM, browsing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="needs chromium")]


def test_the_clock_of_a_simulation_that_has_ended_stands_still(site: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.open(site)
            await browser.until("document.getElementById('live').dataset.state === 'ended'")
            assert "clock stands at" in await browser.says("document.querySelector('header').innerText")
            assert "none was seen here" not in await browser.says("document.querySelector('main').innerText")

    asyncio.run(main())
