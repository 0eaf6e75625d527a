"""Long pages are drawn, and many are looked through, a part at a time: others on the loop have their turn between."""

import asyncio

import pytest
from jinja2 import Environment
from podtrail_extensions.viewer import drawn
from podtrail_extensions.viewer.drawn import in_chunks, in_parts

from podtrail.testing.attempts import MadeAttempt
from tests.extensions.asking import Viewing


async def turns_beside(work: "asyncio.Task[None]") -> int:
    """Return how often others had their turn until some work was done."""
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    await work
    return turns


async def test_a_long_page_gives_others_their_turn_between_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "_PART", 0.0)
    template = Environment(autoescape=True).from_string("{% for one in many %}<{{ one }}>{% endfor %}")

    async def work() -> None:
        assert await in_parts(template, {"many": range(100)}) == "".join(f"<{one}>" for one in range(100))

    assert await turns_beside(asyncio.create_task(work())) > 100


async def test_many_are_looked_through_all_of_them_in_their_order_with_turns_between() -> None:
    seen: list[int] = []

    async def work() -> None:
        async for chunk in in_chunks(range(2_001)):
            seen.extend(chunk)

    turns = await turns_beside(asyncio.create_task(work()))
    assert seen == list(range(2_001))
    assert turns >= 2_001 // 250


@pytest.mark.parametrize("path", ["/?state=all", "/traces", "/policies"])
async def test_the_rows_of_a_list_are_parts_of_their_own(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A table that is one part, a macro's, would keep the loop for as long as all of its rows take."""
    monkeypatch.setattr(drawn, "_PART", 0.0)
    rows = 80
    made = [MadeAttempt(uid=f"uid-{number}", name=f"web-{number}").batch() for number in range(rows)]

    async with viewing() as (viewer, browser):
        for batch in made:
            viewer.observe("traces", batch)
            viewer.library.keep(batch.groups, 10**18)

        async def work() -> None:
            assert (await (await browser.get(path)).text()).count("</tr>") > rows

        await (await browser.get(path)).text()
        assert await turns_beside(asyncio.create_task(work())) > 5 * rows


async def test_a_page_says_as_of_which_change_it_was_asked_for_not_drawn(
    viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who watches it would take it for newer than it is, and not ask for what came meanwhile."""

    async with viewing(MadeAttempt().batch()) as (viewer, browser):
        asked = viewer.stories.changes

        async def in_parts_with_a_change(*about: object) -> str:
            viewer.observe("traces", MadeAttempt(uid="another").batch())
            return await in_parts(*about)  # type: ignore[arg-type]

        monkeypatch.setattr("podtrail_extensions.viewer.site.in_parts", in_parts_with_a_change)
        assert f'data-changes="{asked}"' in await (await browser.get("/")).text()
        assert viewer.stories.changes > asked
