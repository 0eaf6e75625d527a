"""Without scripts every page tells the same facts, and its forms and folds work."""

import asyncio
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.extensions.browser import PROGRAM, browsing
from tests.page.site_map import pages

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="needs chromium")]

# Numbers are told as 0: those of waiting Pods grow from one look to the next.
WORDS = """
(() => {
  const main = document.querySelector("main");
  main.querySelectorAll("details").forEach((one) => { one.open = true; });
  main.querySelectorAll("button, [role=status], [aria-live], .keys").forEach((one) => { one.remove(); });
  return main.innerText.replace(/[0-9]+/g, "0").split(/\\s+/).filter(Boolean);
})()
"""


def test_the_facts_are_the_same(site: str, tmp_path: Path) -> None:
    async def main() -> dict[str, list[str]]:
        missing: dict[str, list[str]] = {}
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            for page in await pages(site, of_a_kind=2):
                told = []
                for runs in (True, False, True):
                    await browser.script(runs=runs)
                    await browser.open(urljoin(site, page.address))
                    told.append(set(await browser.says(WORDS)))
                before, without, after = told
                assert len(without) > 5, page
                missing[page.address] = sorted(before & after - without)
        return {address: words for address, words in missing.items() if words}

    assert asyncio.run(main()) == {}


def test_a_search_is_a_form(site: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with browsing(tmp_path) as browser:
            await browser.look(width=380)
            await browser.script(runs=False)
            await browser.open(site)
            await browser.says("document.getElementById('search').focus()")
            for key in "huge":
                await browser.press(key)
            await browser.press("Enter", loads=True)
            assert "q=huge" in await browser.says("location.search")
            assert "huge-0" in await browser.says("document.querySelector('main').innerText")
            await browser.says("document.querySelector('main a.row').focus()")
            await browser.press("Enter", loads=True)
            assert "huge-0" in await browser.says("document.querySelector('h1').innerText")

    asyncio.run(main())


def test_no_control_that_only_a_script_serves_is_seen(site: str, tmp_path: Path) -> None:
    async def main() -> dict[str, list[str]]:
        dead: dict[str, list[str]] = {}
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.script(runs=False)
            for page in await pages(site, of_a_kind=1):
                await browser.open(urljoin(site, page.address))
                dead[page.address] = await browser.says(
                    "[...document.querySelectorAll('button, input, select')]"
                    ".filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.form)"
                    ".map((one) => one.outerHTML.slice(0, 120))"
                )
        return {address: found for address, found in dead.items() if found}

    assert asyncio.run(main()) == {}
