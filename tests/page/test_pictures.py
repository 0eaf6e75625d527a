"""docs/page.md shows every view, and every picture is of one."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from tests.page.test_site_map import routes
from tools.screenshots import IMAGES, VIEWS, address

PAGE = (IMAGES.parent / "page.md").read_text(encoding="utf-8")
MOST = 3_000_000


def test_each_view_has_its_pictures_beside_what_they_show() -> None:
    wanted = [name for view in VIEWS for name in view.pictures()]
    assert sorted(re.findall(r"images/([^\"]+)", PAGE)) == sorted(wanted)
    assert sorted(path.name for path in IMAGES.iterdir()) == sorted(wanted)


def test_pictures_are_small() -> None:
    assert sum(path.stat().st_size for path in IMAGES.iterdir()) < MOST


@pytest.mark.slow
def test_each_page_of_the_site_is_a_view(site: str) -> None:
    async def main() -> list[str]:
        async with ClientSession() as client:
            return [urlsplit(await address(client, site, view)).path for view in VIEWS]

    paths = asyncio.run(main())
    assert [route.pattern for route in routes() if not any(map(route.fullmatch, paths))] == []
