"""In a real browser: rows are brought up to date in place, and nothing moves under whoever reads."""

import asyncio

import pytest

from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse

pytestmark = pytest.mark.slow
ROWS = "[...document.querySelectorAll('.pods tbody tr')].map((row) => row.dataset.key).join()"
STATE = "document.getElementById('live').dataset.state"
LIVE = f"['live', 'ended'].includes({STATE})"
NEW = "document.getElementById('live-new')"
TALLIES = "document.querySelector('.tallies').textContent.replace(/\\s+/g, ' ')"
MIDDLE = """(() => { const box = document.querySelector('tr[data-key="b"]').getBoundingClientRect();
return [box.x + box.width / 2, box.y + box.height / 2]; })()"""


def waiting(uid: str, number: int = 1) -> MadeAttempt:
    """A Pod that waits: the smaller its uid, the further above it stands."""
    return no_room(uid=uid, name=uid, number=number, start=START + 10**9 * number + ord(uid[0]) * 10**6)


async def test_rows_change_in_place_and_come_where_they_belong_while_nobody_reads(
    viewing: Viewing, browse: Browse
) -> None:
    async with viewing(waiting("b").batch(), waiting("d").batch()) as (viewer, _), browse() as browser:
        await browser.look(width=1280)
        await browser.open(viewer.page)
        await browser.until(f"{LIVE} && {ROWS} === 'b,d'")
        await browser.says("window.first = document.querySelector('tr[data-key=\"b\"]')")
        viewer.observe("traces", waiting("b", 2).batch())
        await browser.until("first.querySelector('[data-label=Tries]').textContent === '2'")
        viewer.observe("traces", waiting("a").batch())
        await browser.until(f"{ROWS} === 'a,b,d'")
        assert await browser.says("first.isConnected && first.dataset.key") == "b"
        assert await browser.says(f"{NEW}.hidden")


@pytest.mark.parametrize("reading", ["pointer", "focus"])
async def test_nothing_moves_under_pointer_or_focus_until_the_button_is_pressed(
    viewing: Viewing, browse: Browse, reading: str
) -> None:
    async with viewing(waiting("b").batch(), waiting("d").batch()) as (viewer, _), browse() as browser:
        await browser.look(width=1280)
        await browser.open(viewer.page)
        await browser.until(f"{LIVE} && {ROWS} === 'b,d'")
        if reading == "pointer":
            await browser.mouse("mouseMoved", *await browser.says(MIDDLE))
        else:
            await browser.press("j")
        for uid in ("a", "c", "e"):
            viewer.observe("traces", waiting(uid).batch())
        viewer.observe("traces", MadeAttempt(uid="bound", name="bound", start=START).batch())
        tallies = await browser.says(TALLIES)
        viewer.observe("traces", waiting("d", 2).batch())
        await browser.until(f"!{NEW}.hidden && {NEW}.textContent === '3 new'")
        # What stands there is brought up to date all the same.
        assert await browser.says("document.querySelector('tr[data-key=\"d\"] [data-label=Tries]').textContent") == "2"
        assert await browser.says(ROWS) == "b,d"
        # Another state's tally would push the others aside: none of them is half of the new.
        assert await browser.says(TALLIES) == tallies
        assert "3 new" in await browser.says("document.getElementById('changed').textContent")
        await browser.press("n")
        await browser.until(f"{NEW}.hidden && {ROWS} === 'a,b,c,d,e'")
        assert (await browser.says(TALLIES)).count("scheduled") == 1


async def test_a_pause_holds_over_pages_and_going_on_catches_up(viewing: Viewing, browse: Browse) -> None:
    async with viewing(waiting("b").batch()) as (viewer, _), browse() as browser:
        await browser.look(width=1280)
        await browser.open(viewer.page)
        await browser.until(f"{LIVE}")
        await browser.press("p")
        await browser.until(f"{STATE} === 'paused'")
        await browser.open(f"{viewer.page}pods/b")
        await browser.until(f"{STATE} === 'paused'")
        viewer.observe("traces", waiting("b", 2).batch())
        await browser.says("document.getElementById('live-pause').click()")
        await browser.until(
            f"{LIVE} && document.querySelectorAll('[aria-labelledby=attempts] tr[data-key]').length === 2"
        )


async def test_a_server_that_was_away_is_found_again_and_its_news_with_it(viewing: Viewing, browse: Browse) -> None:
    async with browse() as browser:
        await browser.look(width=1280)
        async with viewing(waiting("b").batch()) as (viewer, _):
            endpoint = viewer.page.removeprefix("http://").strip("/")
            await browser.open(viewer.page)
            await browser.until(f"{LIVE} && {ROWS} === 'b'")
        await browser.until(f"{STATE} === 'lost'")
        assert await browser.says("document.getElementById('live-state').textContent") == "reconnecting…"
        # As many changes as the one before: it is another server all the same.
        async with viewing(waiting("c").batch(), endpoint=endpoint):
            await browser.until(f"{LIVE} && {ROWS} === 'c'")


def test_a_simulation_that_has_ended_says_as_of_when(viewing: Viewing, browse: Browse) -> None:
    async def main() -> str:
        async with viewing(waiting("b").batch()) as (viewer, _), browse() as browser:
            await browser.look(width=380)
            await browser.open(viewer.page)
            await browser.until(f"{STATE} === 'ended'")
            assert "has ended: all is as of" in await browser.says("document.getElementById('changed').textContent")
            assert await browser.sideways() == []
            told: str = await browser.says("document.getElementById('live-state').textContent")
            return told

    assert asyncio.run(main()).startswith("as of ")
