"""In a real browser no page scrolls sideways, however long names are and however narrow the screen is."""

import pytest

from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse
from tests.extensions.long_names import GATED, PAGES, batches


@pytest.mark.slow
async def test_nothing_scrolls_sideways(viewing: Viewing, browse: Browse) -> None:
    async with viewing(*batches()) as (viewer, _), viewing() as (empty, _), browse() as browser:
        viewer.note(GATED)
        pages = [viewer.page.rstrip("/") + path for path in PAGES.values()]
        pages += [empty.page, f"{empty.page}policies"]
        assert [what for page in pages for what in await browser.sideways_at(page, 380, 768, 1280)] == []


@pytest.mark.slow
async def test_the_head_of_a_page_stays_low(viewing: Viewing, browse: Browse) -> None:
    rows = {1440: 1, 1024: 1, 768: 2, 380: 2}
    async with viewing(*batches()) as (viewer, _), browse() as browser:
        for width, most in rows.items():
            await browser.look(width=width)
            await browser.open(viewer.page)
            height = await browser.says("document.querySelector('header.top').getBoundingClientRect().height")
            assert height < 25 + 30 * most, width
