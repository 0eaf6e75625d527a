"""A page asks nobody but its own site, runs nothing that stands in it, and has nothing to complain about."""

import asyncio
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests.extensions.browser import PROGRAM, browsing
from tests.page.site_map import answers, pages

pytestmark = pytest.mark.slow
STRICT = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}
STANDS_IN_IT = """
[...document.querySelectorAll("script:not([src]), style, [style]")].concat(
  [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))))
  .filter((one) => one.getRootNode() === document).map((one) => one.outerHTML.slice(0, 120))
"""


def test_every_answer_has_a_strict_content_security_policy(site: str) -> None:
    for page in asyncio.run(answers(site)):
        policy = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
        assert {key: policy.get(key) for key in STRICT} == STRICT, page
        assert "unsafe" not in page.policy, page


@pytest.mark.skipif(PROGRAM is None, reason="needs chromium")
def test_pages_ask_only_their_site_and_the_console_stays_empty(site: str, tmp_path: Path) -> None:
    async def main() -> None:
        complaints: dict[str, list[str]] = {}
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.listen()
            for page in await pages(site):
                browser.complaints.clear()
                await browser.open(urljoin(site, page.address))
                complaints[page.address] = [
                    told for told in browser.complaints if not (page.status >= 400 and page.address in told)
                ]
            assert {urlsplit(asked).netloc for asked in browser.asked} == {urlsplit(site).netloc}
        assert {address: told for address, told in complaints.items() if told} == {}

    asyncio.run(main())


@pytest.mark.skipif(PROGRAM is None, reason="needs chromium")
def test_no_script_or_style_stands_in_a_page(site: str, tmp_path: Path) -> None:
    async def main() -> None:
        found: dict[str, list[str]] = {}
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.script(runs=False)
            for page in await pages(site, of_a_kind=1):
                await browser.open(urljoin(site, page.address))
                found[page.address] = await browser.says(STANDS_IN_IT)
        assert {address: told for address, told in found.items() if told} == {}

    asyncio.run(main())
