"""Every page can be used with the keyboard alone."""

import asyncio
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.extensions.browser import Browse, Browser
from tests.page.site_map import pages

pytestmark = pytest.mark.slow

SHIFT = 8
MOST = 120
"""So many controls of a page are gone through; lists go on as they begin."""
CONTROLS = """
window.controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}) && one.tabIndex >= 0 && !one.disabled);
controls.length
"""
DRAWN = "document.getElementById('waterfall-table') === null"
"""The script has put the waterfall in the place of a trace's table."""
FOCUSED = """
(() => {
  const one = document.activeElement, style = getComputedStyle(one);
  if (one === document.body) return {at: -1};
  const box = one.getClientRects()[0] ?? one.getBoundingClientRect();
  const over = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return {
    at: controls.indexOf(one),
    what: one.outerHTML.slice(0, 120),
    marked: style.outlineStyle === "auto" || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2),
    seen: over !== null && (one.contains(over) || over.contains(one)),
    scrolls: one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight,
  };
})()
"""


async def through(browser: Browser) -> list[str]:
    """Return what is wrong with going through all controls by Tab."""
    wrong: list[str] = []
    count, expected = await browser.says(CONTROLS), 0
    while expected < min(count, MOST):
        await browser.press("Tab")
        here: dict[str, Any] = await browser.says(FOCUSED)
        if here["at"] == -1 and here.get("scrolls"):
            continue  # the browser lets what scrolls be reached as well
        if here["at"] != expected:
            missed = await browser.says(f"controls[{expected}].outerHTML.slice(0, 120)")
            return [*wrong, f"reached {here} instead of control {expected} of {count}: {missed}"]
        wrong += [f"{here['what']}: not {name}" for name in ("marked", "seen") if not here[name]]
        expected += 1
    return wrong


@pytest.mark.parametrize("look", [{"width": 1280}, {"width": 380, "dark": True}], ids=["wide", "narrow, dark"])
def test_tab_reaches_every_control_in_its_order_and_shows_where_it_is(
    site: str, browse: Browse, look: dict[str, Any]
) -> None:
    async def main() -> dict[str, list[str]]:
        found = {}
        async with browse() as browser:
            await browser.look(**look)
            for page in await pages(site, of_a_kind=1):
                if len(page.kind.asked) > 1:
                    continue  # the same page, of other rows
                await browser.open(urljoin(site, page.address))
                await browser.until(DRAWN)
                found[page.address] = await through(browser)
        assert len(found) > 5
        return {address: wrong for address, wrong in found.items() if wrong}

    assert asyncio.run(main()) == {}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<a href=x>one</a><button>two</button>", []),
        ("<style>a:focus {outline: none}</style><a href=x>one</a>", ["not marked"]),
        ("<a href=x>one</a><button tabindex=2>two</button>", ["instead of control 0"]),
        ("<a href=x>one</a><div style='position: fixed; inset: 0; background: red'></div>", ["not seen"]),
        ("<a href=x onfocus='this.blur()'>one</a><button>two</button>", ["reached", "control 0 of 2"]),
    ],
)
def test_what_is_wrong_with_a_page_is_found(browse: Browse, page: str, said: list[str]) -> None:
    async def main() -> str:
        async with browse() as browser:
            await browser.look(width=800)
            await browser.open(f"data:text/html,<!doctype html><title>t</title>{page}")
            return "; ".join(await through(browser))

    told = asyncio.run(main())
    assert all(words in told for words in said)
    assert bool(told) == bool(said)


def test_a_pod_is_found_opened_and_left_again_by_keys_alone(site: str, browse: Browse) -> None:
    async def main() -> None:
        async with browse() as browser:
            await browser.look(width=1280)
            await browser.open(site)
            await browser.press("/")
            assert await browser.says("document.activeElement.id") == "search"
            for key in "web-":
                await browser.press(key)
            await browser.press("Enter", loads=True)
            assert "q=web-" in await browser.says("location.search")
            await browser.press("j")
            await browser.press("j")
            await browser.press("k")
            first = await browser.says("document.activeElement === document.querySelector('main a.row')")
            assert first, await browser.says("document.activeElement.outerHTML")
            await browser.press("Enter", loads=True)
            assert (await browser.says("location.pathname")).startswith("/pods/")
            await browser.press("u", loads=True)
            assert await browser.says("location.pathname") == "/"

    asyncio.run(main())


def test_shortcuts_can_be_turned_off(site: str, browse: Browse) -> None:
    async def main() -> None:
        async with browse() as browser:
            await browser.look(width=1280)
            await browser.open(site)
            await browser.says("document.getElementById('keys').focus()")
            await browser.press(" ")
            assert await browser.says("document.getElementById('keys').textContent") == "keys off"
            await browser.press("/")
            assert await browser.says("document.activeElement.id") == "keys"

    asyncio.run(main())
