"""Every page, in every width and scheme of colours, with scripts and without: what a person would stumble over."""

import asyncio
from collections import defaultdict
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from tests.extensions.browser import Browse, Browser
from tests.page.axe import Rules, violations
from tests.page.site_map import Page, pages

pytestmark = pytest.mark.slow
Findings = dict[str, dict[str, Any]]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"width": 1280},
    "dark": {"width": 1280, "dark": True},
    "forced colours": {"width": 1280, "forced": True},
    "still": {"width": 1280, "still": True},
    "narrow": {"width": 380},
    "medium": {"width": 800},
    "wide": {"width": 2560},
}
UNSEEN = """
(() => {
  const ground = getComputedStyle(document.body).backgroundColor;
  const drawn = (paint) => paint !== "none" && paint !== "rgba(0, 0, 0, 0)" && paint !== ground;
  const filled = (shape) => drawn(getComputedStyle(shape).fill);
  const shapes = (within) => [...within.querySelectorAll("rect, path, line, circle, polyline, polygon")];
  return [...document.querySelectorAll("main svg")].filter((svg) => svg.checkVisibility()).flatMap((svg) =>
    shapes(svg).filter((shape, at, all) =>
      // What has the ground's colour is seen on what is filled below it.
      !filled(shape) && !drawn(getComputedStyle(shape).stroke) && !all.slice(0, at).some(filled)))
    .map((shape) => shape.outerHTML.slice(0, 120)).slice(0, 5);
})()
"""
NAMED_BY_COLOUR_ALONE = """
[...document.querySelectorAll("main .state, main .result, main .fail, main .vote")]
  .filter((one) => one.checkVisibility() && !one.textContent.trim()).map((one) => one.outerHTML.slice(0, 120))
"""
MOVING = """
[...document.querySelectorAll("*")].filter((one) => {
  const style = getComputedStyle(one), long = (text) => text.split(",").some((part) => parseFloat(part) > 0.01);
  return long(style.transitionDuration) || (style.animationName !== "none" && long(style.animationDuration))
    || style.scrollBehavior === "smooth";
}).map((one) => one.outerHTML.slice(0, 120)).slice(0, 5)
"""
CHECKS = {
    "light": {"drawn and not seen": UNSEEN},
    "dark": {"drawn and not seen": UNSEEN},
    "forced colours": {"drawn and not seen": UNSEEN, "named by its colour alone": NAMED_BY_COLOUR_ALONE},
    "still": {"moves": MOVING},
}
AXE: dict[str, Rules] = {"light": "all", "dark": "of colours", "narrow": "of all else"}
# Numbers are told as 0: those of waiting Pods grow from one look to the next. The waterfall has tests of its own.
WORDS = """
(() => {
  const main = document.querySelector("main");
  main.querySelectorAll("details").forEach((one) => { one.open = true; });
  const own = "button, [role=status], [aria-live], .keys, #wf, #wf-tools, #wf-help";
  main.querySelectorAll(own).forEach((one) => { one.remove(); });
  return main.innerText.replace(/[0-9]+/g, "0").split(/\\s+/).filter((word) => /[\\p{L}0]/u.test(word));
})()
"""
STANDS_IN_IT = """
[...document.querySelectorAll("script:not([src]), style, [style]")].concat(
  [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))))
  .filter((one) => one.getRootNode() === document).map((one) => one.outerHTML.slice(0, 120))
"""
DEAD_CONTROLS = """
[...document.querySelectorAll('button, input, select')]
  .filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.form)
  .map((one) => one.outerHTML.slice(0, 120))
"""


async def skips(browser: Browser) -> bool:
    """Return whether the first control leads over the page's head to its content."""
    await browser.press("Tab")
    shown = "document.activeElement.matches('a.skip') && document.activeElement.getBoundingClientRect().width > 50"
    first = await browser.says(shown)
    await browser.press("Enter")
    there = await browser.says("document.activeElement.id") == "main"
    await browser.press("Tab")
    within = "document.querySelector('main').contains(document.activeElement)"
    none = "!document.querySelector('main a[href], main button, main input')"
    return bool(first and there and await browser.says(f"{within} || {none}"))


async def looked_at(browser: Browser, page: Page, address: str, found: Findings) -> set[str]:
    """Note what is wrong with a page in all looks; return its words."""
    browser.complaints.clear()
    await browser.look(**LOOKS["light"])
    await browser.open(address)
    complaints = [told for told in browser.complaints if not (page.status >= 400 and page.address in told)]
    found["complaints"][page.address] = complaints
    found["skip"][page.address] = [] if await skips(browser) else ["no link, or it leads elsewhere"]
    for name, look in LOOKS.items():
        await browser.look(**look)
        assert await browser.says("innerWidth") == look["width"]
        found[f"{name}: scrolls sideways"][page.address] = await browser.sideways()
        for what, expression in CHECKS.get(name, {}).items():
            found[f"{name}: {what}"][page.address] = await browser.says(expression)
        # With more in the query it is the same page, of other rows.
        if name in AXE and len(page.kind.asked) < 2:
            found[f"{name}: axe"][page.address] = await violations(browser, AXE[name])
    await browser.look(**LOOKS["light"])
    return set(await browser.says(WORDS))


async def without_scripts(browser: Browser, page: Page, address: str, found: Findings) -> set[str]:
    """Note what is wrong with a page where scripts don't run; return its words."""
    await browser.open(address)
    found["stands in the page"][page.address] = await browser.says(STANDS_IN_IT)
    found["needs a script"][page.address] = await browser.says(DEAD_CONTROLS)
    return set(await browser.says(WORDS))


def test_nothing_is_wrong_with_any_page(site: str, browse: Browse) -> None:
    async def main() -> Findings:
        found: Findings = defaultdict(dict)
        words: dict[str, set[str]] = {}
        there = await pages(site, of_a_kind=1)
        async with browse() as browser:
            await browser.listen()
            for page in there:
                words[page.address] = await looked_at(browser, page, urljoin(site, page.address), found)
            assert {urlsplit(asked).netloc for asked in browser.asked} == {urlsplit(site).netloc}
        async with browse() as browser:
            await browser.look(**LOOKS["light"])
            await browser.script(runs=False)
            for page in there:
                plain = await without_scripts(browser, page, urljoin(site, page.address), found)
                assert len(plain) > 5, page
                found["said by scripts alone"][page.address] = sorted(words[page.address] - plain)
        assert len(there) > 20
        return found

    found = asyncio.run(main())
    assert {what: by for what, on in found.items() if (by := {page: told for page, told in on.items() if told})} == {}


def test_axe_finds_what_is_wrong(browse: Browse) -> None:
    async def main() -> list[str]:
        async with browse() as browser:
            await browser.look(width=380)
            await browser.open("data:text/html,<img src=x><p style='color:%23eee;background:%23fff'>hard to read</p>")
            return [told.split()[0] for told in await violations(browser)]

    assert {"color-contrast", "image-alt", "html-has-lang"} <= set(asyncio.run(main()))


def test_a_search_is_a_form(site: str, browse: Browse) -> None:
    async def main() -> None:
        async with browse() as browser:
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


def test_of_a_simulation_that_has_ended_the_clock_stands_still_and_the_head_is_one_row(
    site: str, browse: Browse
) -> None:
    rows = "new Set([...document.querySelectorAll('.top > *')].filter((one) => one.offsetWidth)"
    middles = ".map((one) => Math.round((one.offsetTop + one.offsetHeight / 2) / 10))).size"

    async def main() -> None:
        async with browse() as browser:
            await browser.look(width=1280)
            await browser.open(site)
            await browser.until("document.getElementById('live').dataset.state === 'ended'")
            assert "clock stands at" in await browser.says("document.querySelector('header').innerText")
            assert "none was seen here" not in await browser.says("document.querySelector('main').innerText")
            assert await browser.says(rows + middles) == 1

    asyncio.run(main())
