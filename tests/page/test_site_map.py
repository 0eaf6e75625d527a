"""What the other tests look at is all that there is."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest
from podtrail_extensions.viewer.last_came import LastCame
from podtrail_extensions.viewer.site import Backend, Site, SourceTime
from podtrail_extensions.viewer.tap import Taps

from podtrail.component import Context
from podtrail.story import Library
from tests.page.site_map import MISSING, answers

pytestmark = pytest.mark.slow


PARTS = ("/traces/{id}/spans/{span}",)
"""Routes that answer a script with part of a page."""


def routes() -> list[re.Pattern[str]]:
    """Return the patterns of the addresses of pages."""
    library = Library(max_mib=1, max_decisions_mib=1)
    site = Site(
        library,
        Backend("", 1, 1, 0),
        (),
        lambda: SourceTime(0, live=True),
        Context(id="viewer").metrics,
        Taps(library, came := LastCame()),
        came,
    )
    found = []
    for resource in site.application().router.resources():
        about = resource.get_info()
        if not resource.canonical.startswith(("/api/", "/static/")) and resource.canonical not in PARTS:
            found.append(about.get("pattern") or re.compile(re.escape(about["path"])))
    # Files are no pages, and what is found by a Pod's name is found by its uid as well.
    return [pattern for pattern in found if r"\." not in pattern.pattern and "<namespace>" not in pattern.pattern]


def test_links_lead_to_every_page_that_the_site_has(site: str) -> None:
    paths = [urlsplit(page.address).path for page in asyncio.run(answers(site)) if page.status == 200]
    assert [route.pattern for route in routes() if not any(map(route.fullmatch, paths))] == []


def test_no_link_of_the_site_leads_nowhere(site: str) -> None:
    found = [page for page in asyncio.run(answers(site)) if page.address not in MISSING]
    assert [(page.found_on, page.address) for page in found if page.status != 200] == []
