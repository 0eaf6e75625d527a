"""Every page is free of what axe-core finds, in light and dark, wide, narrow and in forced colours."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.extensions.browser import PROGRAM, browsing
from tests.page.axe import violations
from tests.page.site_map import pages

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="needs chromium")]


@pytest.mark.parametrize(
    "look",
    [
        pytest.param({"width": 1280}, id="light"),
        pytest.param({"width": 1280, "dark": True}, id="dark"),
        pytest.param({"width": 380}, id="narrow"),
    ],
)
def test_axe_finds_nothing_on_any_page(site: str, tmp_path: Path, look: dict[str, Any]) -> None:
    async def main() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        async with browsing(tmp_path) as browser:
            await browser.look(**look)
            for page in await pages(site, of_a_kind=1):
                if len(page.kind.asked) > 1:
                    continue  # the same page, of other rows
                await browser.open(urljoin(site, page.address))
                found[page.address] = await violations(browser, of_colour="dark" in look)
        assert len(found) > 10
        return {address: told for address, told in found.items() if told}

    assert asyncio.run(main()) == {}


def test_axe_finds_what_is_wrong(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with browsing(tmp_path) as browser:
            await browser.look(width=380)
            await browser.open("data:text/html,<img src=x><p style='color:%23eee;background:%23fff'>hard to read</p>")
            return [told.split()[0] for told in await violations(browser)]

    assert {"color-contrast", "image-alt", "html-has-lang"} <= set(asyncio.run(main()))
