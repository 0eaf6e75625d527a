"""Pages fit into every width, and can be seen in light, dark and forced colours; nothing moves where it should not."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.extensions.browser import PROGRAM, browsing
from tests.page.site_map import pages

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="needs chromium")]

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


def seen(site: str, folder: Path, look: dict[str, Any], expression: str | None) -> dict[str, Any]:
    """Return what is wrong with pages by what an expression finds on them, or with what scrolls sideways."""

    async def main() -> dict[str, Any]:
        found = {}
        async with browsing(folder) as browser:
            await browser.look(**look)
            for page in await pages(site, of_a_kind=2):
                await browser.open(urljoin(site, page.address))
                assert await browser.says("innerWidth") == look["width"]
                found[page.address] = await (browser.says(expression) if expression else browser.sideways())
        assert len(found) > 10
        return {address: what for address, what in found.items() if what}

    return asyncio.run(main())


@pytest.mark.parametrize("width", [380, 800, 1280, 2560])
def test_nothing_scrolls_sideways(site: str, tmp_path: Path, width: int) -> None:
    assert seen(site, tmp_path, {"width": width}, None) == {}


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"forced": True}], ids=["light", "dark", "forced colours"])
def test_everything_drawn_can_be_seen(site: str, tmp_path: Path, look: dict[str, bool]) -> None:
    assert seen(site, tmp_path, {"width": 1280, **look}, UNSEEN) == {}


def test_states_and_results_are_told_in_words(site: str, tmp_path: Path) -> None:
    assert seen(site, tmp_path, {"width": 1280, "forced": True}, NAMED_BY_COLOUR_ALONE) == {}


def test_nothing_moves_where_motion_is_to_be_reduced(site: str, tmp_path: Path) -> None:
    assert seen(site, tmp_path, {"width": 1280, "still": True}, MOVING) == {}


def test_the_head_of_a_page_is_one_row_at_1280_px(site: str, tmp_path: Path) -> None:
    rows = "new Set([...document.querySelectorAll('.top > *')].filter((one) => one.offsetWidth)"
    middles = ".map((one) => Math.round((one.offsetTop + one.offsetHeight / 2) / 10))).size"

    async def main() -> None:
        async with browsing(tmp_path) as browser:
            await browser.look(width=1280)
            await browser.open(site)
            await browser.until("document.getElementById('live').dataset.state === 'ended'")
            assert await browser.says(rows + middles) == 1

    asyncio.run(main())
