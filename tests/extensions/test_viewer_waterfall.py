"""In a real browser: a trace's waterfall by keys and pointer, with thousands of spans, on a phone, with no script."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podtrail.otlp import Batch
from podtrail.story import duration
from podtrail.testing.attempts import MadeAttempt
from tests.extensions.asking import Viewing
from tests.extensions.big_trace import TRACE, big_trace, span_id
from tests.extensions.browser import Browse, Browser

pytestmark = pytest.mark.slow
ID = TRACE.hex()
DRAWN = "document.querySelectorAll('.wf-row').length"
ACTIVE = "document.querySelector('.wf-row.active')"
NAME = f"{ACTIVE}?.querySelector('.wf-name bdi').textContent"
TOLD = "document.getElementById('wf-told').textContent"
TICKS = "[...document.querySelectorAll('#wf-ticks span')].map((one) => one.textContent)"
WIDTH = "Number(document.querySelectorAll('.wf-row .bar rect:first-child')[3].getAttribute('width'))"
FOCUS = "document.getElementById('wf-grid').focus()"
STEPS = (0, 1, 18, 999, 1_000, 18_000, 999_499, 999_500, 4_310_000, 59_949_000_000, 59_950_000_000, 252_000_000_000)
LENGTHS = (*STEPS, 3_600_000_000_000, 86_400_000_000_000, 5_356_800_000_000_000)


@asynccontextmanager
async def opened(
    viewing: Viewing, browse: Browse, count: int, *, width: int = 1280, query: str = ""
) -> AsyncIterator[Browser]:
    """The page of a trace of so many spans, with its grid."""
    async with viewing(Batch([big_trace(count)], 0)) as (viewer, _), browse() as browser:
        await browser.listen()
        await browser.look(width=width)
        await browser.open(f"{viewer.page}traces/{ID}{query}")
        await browser.until(f"{DRAWN} > 3 && {ACTIVE} !== null")
        yield browser
        assert browser.complaints == []
        assert await browser.sideways() == []


async def press(browser: Browser, *keys: str) -> Any:
    """Return what row is the active one behind these keys."""
    for key in keys:
        await browser.press(key)
    return await browser.says(NAME)


async def test_of_thousands_of_spans_only_those_in_sight_are_drawn(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 5_200) as browser:
        assert await browser.says(TOLD) == "5,200 of 5,200 spans"
        assert await browser.says("document.querySelector('[role=treegrid]').ariaRowCount") == "5201"
        await browser.says(FOCUS)
        await press(browser, "End")
        await browser.until(f"{ACTIVE} !== null && {ACTIVE}.getAttribute('aria-rowindex') === '5201'")
        assert await browser.says(DRAWN) < 60
        places = await browser.says("[...document.querySelectorAll('.wf-row')].map((row) => +row.ariaRowIndex)")
        assert places == list(range(places[0], 5_202))
        assert await browser.says("document.activeElement.getAttribute('aria-activedescendant')") == "wf-5199"
        assert await browser.says("document.getElementById('wf-5199').getBoundingClientRect().bottom") < 900
        assert await press(browser, "Home") == "Everything"


async def test_keys_move_fold_and_show_the_span_beside(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 60) as browser:
        await browser.says(FOCUS)
        assert await press(browser, "ArrowDown") == "plugin: P1"
        assert await press(browser, "ArrowLeft") == "plugin: P1"
        assert await browser.says(f"{ACTIVE}.ariaExpanded") == "false"
        assert await browser.says(TOLD) == "50 of 60 spans"
        assert await press(browser, "ArrowDown") == "step 2"
        assert await press(browser, "ArrowUp", "ArrowRight", "ArrowRight") == "step 8"
        assert await press(browser, "ArrowLeft", "ArrowLeft") == "plugin: P1"
        await press(browser, "Enter")
        await browser.until("document.querySelector('#details h2').textContent === 'plugin: P1'")
        assert await browser.says("location.search") == f"?span={span_id(1).hex()}"
        assert await browser.says(f"{ACTIVE}.ariaSelected") == "true"
        assert await browser.says("document.activeElement.id") == "wf-grid"


async def test_a_search_moves_the_selection_also_into_what_is_folded(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 400) as browser:
        await browser.says("document.getElementById('wf-collapse').click()")
        assert await browser.says(TOLD) == "8 of 400 spans"
        await browser.says("document.getElementById('wf-find').focus()")
        for letter in "step 39":
            await browser.press(letter)
        await browser.until(f"{TOLD}.includes('of 5')")
        assert await press(browser, "Enter") == "step 390"
        assert await press(browser, "Enter") == "step 392"
        await browser.press("Enter", 8)
        assert await browser.says(NAME) == "step 390"
        assert "“step 39”: 1 of 5" in await browser.says(TOLD)


async def test_what_is_short_or_off_the_critical_path_is_hidden_and_counted(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 60) as browser:
        await browser.says("document.getElementById('wf-critical').click()")
        shown = await browser.says(DRAWN)
        assert 1 < shown < 60
        assert await browser.says(TOLD) == f"{shown} of 60 spans · {60 - shown} hidden by what is asked for"
        await browser.says("document.getElementById('wf-critical').click()")
        field = "document.getElementById('wf-least')"
        await browser.says(f"{field}.value = '1'; {field}.dispatchEvent(new Event('input'))")
        assert await browser.says(TOLD) == "1 of 60 spans · 59 hidden by what is asked for"


def test_a_drag_over_the_bars_zooms_and_keys_zoom_back(viewing: Viewing, browse: Browse) -> None:
    async def main() -> None:
        async with opened(viewing, browse, 20) as browser:
            assert await browser.says(TICKS) == ["0", "1 s", "2 s", "3 s", "4 s"]
            box = await browser.says(
                "(({ left, right, top }) => [left + 9.6, right - 9.6, top + 14])"
                "(document.querySelectorAll('.wf-row .wf-axis')[2].getBoundingClientRect())"
            )
            left, right, middle = box
            await browser.mouse("mousePressed", left + (right - left) / 4, middle)
            for part in (0.3, 0.4, 0.5):
                await browser.mouse("mouseMoved", left + (right - left) * part, middle)
            assert not await browser.says("document.getElementById('wf-brush').hidden")
            await browser.mouse("mouseReleased", left + (right - left) / 2, middle)
            assert [words[:3] for words in await browser.says(TICKS)] == ["1 s", "1.2", "1.5", "1.7", "2 s"]
            assert "zoomed in" in await browser.says(TOLD)
            assert (await browser.says(NAME)) == "Everything"
            await browser.says(FOCUS)
            await press(browser, "-")
            assert await browser.says(TICKS) == ["0", "500 ms", "1 s", "1.5 s", "2 s"]
            await press(browser, "0")
            assert await browser.says(TICKS) == ["0", "1 s", "2 s", "3 s", "4 s"]
            await press(browser, "ArrowDown", "z")
            assert await browser.says(f"Number({ACTIVE}.querySelector('rect').getAttribute('width'))") > 800

    asyncio.run(main())


async def test_on_the_log_scale_microseconds_are_wide_beside_seconds(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 12) as browser:
        before = await browser.says(WIDTH)
        await browser.says(FOCUS)
        await press(browser, "l")
        assert await browser.says("document.getElementById('wf-log').ariaPressed") == "true"
        assert before == 3
        assert await browser.says(WIDTH) > 10


async def test_lengths_of_time_are_in_the_same_words_as_the_servers(viewing: Viewing, browse: Browse) -> None:
    async with opened(viewing, browse, 5) as browser:
        module = "import('/static/waterfall_scale.js')"
        told = await browser.says(f"{module}.then((scale) => {json.dumps(LENGTHS)}.map(scale.duration))")
        assert told == [duration(length) for length in LENGTHS]


async def test_a_followed_link_shows_its_row_and_keeps_the_title_in_view(viewing: Viewing, browse: Browse) -> None:
    chosen = span_id(4_001).hex()
    async with opened(viewing, browse, 5_000, query=f"?span={chosen}#s-{chosen}") as browser:
        assert await browser.says(NAME) == "plugin: P22"
        assert await browser.says(f"{ACTIVE}.ariaSelected") == "true"
        await browser.says("scrollTo(0, document.body.scrollHeight)")
        assert await browser.says("document.querySelector('h1').getBoundingClientRect().top") >= 0


def test_on_a_phone_a_span_comes_up_from_below_and_goes_again(viewing: Viewing, browse: Browse) -> None:
    async def main() -> None:
        async with opened(viewing, browse, 60, width=380) as browser:
            await browser.says(
                "document.querySelectorAll('.wf-row')[2].querySelector('bdi').scrollIntoView({ block: 'center' })"
            )
            x, y = await browser.says(
                "(({ x, y, height }) => [x + 5, y + height / 2])"
                "(document.querySelectorAll('.wf-row')[2].querySelector('bdi').getBoundingClientRect())"
            )
            await browser.mouse("mousePressed", x, y)
            await browser.mouse("mouseReleased", x, y)
            await browser.until("document.querySelector('aside.sheet') !== null")
            await browser.says("document.getElementById('close-details').click()")
            assert await browser.says("document.querySelector('aside.sheet')") is None

    asyncio.run(main())


async def test_without_a_script_the_table_is_there_and_no_control_that_does_nothing(
    viewing: Viewing, browse: Browse
) -> None:
    made = MadeAttempt()
    async with viewing(made.batch()) as (viewer, _), browse() as browser:
        await browser.script(runs=False)
        await browser.look(width=1280)
        await browser.open(f"{viewer.page}traces/{made.trace_id.hex()}")
        assert await browser.says("document.querySelectorAll('#waterfall tbody tr').length") > 3
        for one in ("wf", "wf-tools", "wf-help", "close-details"):
            assert await browser.says(f"getComputedStyle(document.getElementById('{one}')).display") == "none"
