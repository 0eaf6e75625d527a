"""Attempts over time on the pages: drawn by the server, told in words, and a range of it chosen by an address."""

import asyncio
import json
import re

import pytest
from aiohttp import ClientSession
from podtrail_extensions.viewer.asked_range import range_query, read_range
from podtrail_extensions.viewer.shape_views import drawing, row_range

from podtrail.otlp import Batch
from podtrail.story import HeardBetween
from podtrail.story.shape import ROWS, AttemptShape, ShapeAttempt
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room
from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse

SECOND = 10**9


def batches() -> list[Batch]:
    """Three Pods: one found its node in the first second, one in the sixth, one was refused in seconds 2, 3 and 4."""
    return [
        MadeAttempt(uid="early", name="early", start=START).batch(),
        *(no_room(uid="late", name="late", number=n, start=START + (n + 1) * SECOND).batch() for n in (1, 2, 3)),
        MadeAttempt(uid="last", name="last", start=START + 6 * SECOND).batch(),
    ]


async def page(browser: ClientSession, path: str) -> str:
    async with browser.get(path) as answer:
        assert answer.status == 200, path
        return await answer.text()


def keys(text: str) -> list[str]:
    """Return the Pods that are listed."""
    return re.findall(r'<a class="row" href="/pods/(\w+)"', text)


def asked(since: int, until: int) -> str:
    return "&".join(f"{name}={end}" for name, end in range_query(HeardBetween(since, until)).items())


async def test_the_front_page_draws_it_and_says_it_in_words(viewing: Viewing) -> None:
    async with viewing(*batches()) as (_, browser):
        text = await page(browser, "/")
    assert re.search(r'<svg class="cells"[^>]*aria-label="5 attempts from [^"]*: 3 Unschedulable, 2 Success\.', text)
    assert text.count('data-attempts="1"') == 5
    assert re.search(r'<path class="Unschedulable s1" d="M20 \d+h9v9h-9zM30 \d+h9v9h-9zM40 ', text)
    assert "style=" not in text


async def test_changes_of_the_configuration_are_marked_and_lead_to_what_happened_around_them(viewing: Viewing) -> None:
    told = [
        no_room(
            uid=f"u{n}", name=f"p{n}", start=START + n * SECOND, attributes={"scheduler.config.generation": generation}
        )
        for n, generation in enumerate(["first", "first", "second", "second", "third"])
    ]
    async with viewing(*(attempt.batch() for attempt in told)) as (_, browser):
        for path in ("/", "/plugins/NodeAffinity"):
            text = await page(browser, path)
            assert re.search(r'<path class="change" d="M20 0V\d+M40 0V\d+">', text), path
            assert "The scheduler&#39;s configuration changed 2 times, last at 14:13:22, 14:13:24." in text
            assert '<code title="second → third">second → third</code>' in text
            assert "/incident?from=" in text
        only_one = await page(browser, "/pods/u2")
    assert "configuration changed" not in only_one


async def test_a_range_lists_the_pods_that_were_tried_in_it_whatever_their_state(viewing: Viewing) -> None:
    async with viewing(*batches()) as (_, browser):
        both_ends = asked(START, START + 2 * SECOND)
        assert sorted(keys(await page(browser, f"/?{both_ends}"))) == ["early", "late"]
        assert keys(await page(browser, f"/?{asked(START + 1, START + 2 * SECOND - 1)}")) == []
        assert keys(await page(browser, f"/?state=scheduled&{both_ends}")) == ["early"]
        text = await page(browser, f"/?{both_ends}")
        # What leads from there keeps it, until it is let go.
        assert re.search(r'href="/\?state=scheduled&amp;from=\d+&amp;to=\d+"', text)
        assert re.search(r'<rect class="brush" x="0" width="30"', text)
        assert re.search(r'<input type="hidden" name="from" value="\d+">', text)
        async with browser.get(f"/api/v1/pods?{both_ends}") as answer:
            assert (await answer.json())["matching"] == 2


async def test_each_row_of_the_table_leads_to_the_pods_of_its_time(viewing: Viewing) -> None:
    async with viewing(*batches()) as (_, browser):
        links = re.findall(r'<th scope="row"><a href="(/\?from=[^"]*)"><time', await page(browser, "/"))
        found = [keys(await page(browser, link.replace("&amp;", "&"))) for link in links]
    assert found == [["early"], ["late"], ["late"], ["late"], ["last"]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("from=yesterday", "from is no moment: yesterday"),
        ("to=-1", "to is no moment"),
        ("to=999999999999", "to is no moment"),
        ("to=1.0000000001", "to is no moment"),
        ("to=%D9%A1", "to is no moment"),
        ("from=1969-12-31", "from is before 1970"),
        ("from=2&to=1", "to is before from"),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/shape"])
async def test_what_is_no_range_is_refused_in_words(viewing: Viewing, path: str, query: str, words: str) -> None:
    async with viewing() as (_, browser), browser.get(f"{path}?{query}") as answer:
        status, told = answer.status, json.loads(await answer.text())["error"]
    assert status == 400
    assert words in told


def test_a_range_is_read_to_the_nanosecond_and_written_as_it_is_read() -> None:
    for text, nanoseconds in (("1.5", 1_500_000_000), ("1760000000.000000001", 1_760_000_000_000_000_001), ("0", 0)):
        assert read_range({"from": text}, START) == HeardBetween(nanoseconds, None)
        assert range_query(HeardBetween(nanoseconds, None)) == {"from": text}
    day = 86_400 * SECOND
    assert read_range({"from": "14:02"}, day) == HeardBetween(14 * 3_600 * SECOND + 120 * SECOND, None)
    for text in ("1970-01-02", "1970-01-02T00:00:00Z", "1970-01-02T02:00:00+02:00"):
        assert read_range({"to": text}, START) == HeardBetween(None, day)


async def test_the_api_tells_of_all_of_a_plugin_and_of_a_pod(viewing: Viewing) -> None:
    async with viewing(*batches()) as (_, browser):

        async def shape(query: str) -> tuple[int, int]:
            async with browser.get(f"/api/v1/shape?{query}") as answer:
                told = await answer.json()
            return told["attempts"], told["outside"]

        assert await shape("") == (5, 0)
        assert await shape(asked(START + 2 * SECOND, START + 3 * SECOND)) == (2, 3)
        assert await shape("plugin=NodeAffinity") == (3, 0)
        assert await shape("plugin=nobody") == (0, 0)
        assert await shape("pod=late") == (3, 0)
        async with browser.get("/api/v1/shape?pod=nobody") as answer:
            assert answer.status == 404
        text = await page(browser, "/?plugin=NodeAffinity")
        assert keys(text) == ["late"]
        assert 'aria-label="3 attempts from' in text
        assert 'data-path="/?plugin=NodeAffinity"' in text
        assert 'aria-label="3 attempts from' in await page(browser, "/pods/late")
        text = await page(browser, "/plugins/NodeAffinity")
        link = re.search(r'<th scope="row"><a href="(/\?[^"]*from=[^"]*)"><time', text)
        assert link
        assert keys(await page(browser, link[1].replace("&amp;", "&"))) == ["late"]


def test_rows_have_words_and_what_is_not_told_one_of_its_own() -> None:
    assert [row_range(row) for row in (0, 1, 2, ROWS - 1)] == [
        *("not told", "0 to 30 µs", "30 µs to 100 µs", "1m 40s or longer")
    ]
    drawn = drawing(AttemptShape.of([ShapeAttempt(START, None, "Error"), ShapeAttempt(START, MS, "")]).told())
    assert "1 Error, 1 other" in drawn.words
    assert [outcome for outcome, _ in drawn.marks] == ["Error", "other"]
    assert drawing(AttemptShape().told()).words == "No attempts."


def test_a_picture_of_many_attempts_is_small(viewing: Viewing) -> None:
    async def main() -> str:
        async with viewing() as (viewer, browser):
            for n in range(20_000):
                viewer.stories.shape.add(ShapeAttempt(START + n * 10 * SECOND, 10 ** (4 + n % 8), "Error"))
            viewer.observe("traces", no_room().batch())
            return await page(browser, "/")

    assert len(asyncio.run(main())) < 64 << 10


@pytest.mark.slow
async def test_a_range_is_chosen_by_mouse_and_by_keys(viewing: Viewing, browse: Browse) -> None:
    box = (
        "(() => { const b = document.querySelector('.cells').getBoundingClientRect(); return [b.x, b.y, b.width]; })()"
    )
    said = "document.querySelector('.chosen-time').textContent"

    async with viewing(*batches()) as (viewer, _), browse() as browser:
        await browser.look(width=1280)
        await browser.open(viewer.page)
        await browser.until("['live', 'ended'].includes(document.getElementById('live').dataset.state)")
        x, y, width = await browser.says(box)
        column = width / 7
        await browser.mouse("mousePressed", x + column * 4.5, y + 5)
        await browser.mouse("mouseMoved", x + column * 2.5, y + 5)
        await browser.until(f"{said}.endsWith('3 attempts')")
        await browser.mouse("mouseReleased", x + column * 2.5, y + 5, loads=True)
        first = START + 2 * SECOND
        expected = asked(first, first + 3 * SECOND - 1)
        await browser.until(f"location.search.includes('{expected}') && document.querySelector('.pods tbody tr')")
        assert await browser.says("document.querySelectorAll('.pods tbody tr').length") == 1

        await browser.open(viewer.page)
        await browser.says("document.querySelector('.heat').focus()")
        for key, modifiers in (("ArrowRight", 0), ("ArrowRight", 0), ("ArrowLeft", 8)):
            await browser.press(key, modifiers)
        await browser.press("Enter", loads=True)
        expected = asked(START, START + 2 * SECOND - 1)
        await browser.until(f"location.search.includes('{expected}')")

        await browser.open(viewer.page)
        await browser.says("document.querySelector('.heat').focus()")
        await browser.press("End")
        await browser.until("document.querySelector('.brush') !== null")
        viewer.observe("traces", MadeAttempt(uid="news", name="news", start=START + 8 * SECOND).batch())
        await browser.until("!document.getElementById('live-new').hidden")
        assert (
            await browser.says("document.querySelector('.heat').dataset.columns") == "7"
        )  # it stays while one chooses
        await browser.press("n")
        await browser.until("document.querySelector('.heat').dataset.columns === '9'")
        assert await browser.says("document.querySelector('.brush').getAttribute('x')") == "60"
        await browser.press("Escape")
        await browser.until("document.querySelector('.brush') === null")
