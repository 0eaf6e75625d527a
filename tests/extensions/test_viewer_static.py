"""Styles and scripts: by their names, and by addresses with their digest, which a browser asks for once."""

import re
from importlib.resources import files

import pytest
from aiohttp import ClientSession
from podtrail_extensions import viewer as package
from podtrail_extensions.viewer import static_files

from podtrail.testing.attempts import MadeAttempt
from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse

POD = MadeAttempt()
PAGES = ("/", f"/pods/{POD.uid}", f"/traces/{POD.trace_id.hex()}", "/nodes", "/nowhere")
LOADED = """
performance.getEntriesByType("resource").filter((one) => one.name.includes("/static/"))
  .map((one) => [one.name.split("/").at(-1), one.transferSize > 0])
"""


async def addresses(browser: ClientSession) -> list[str]:
    """Return the addresses of files that pages name."""
    named = set[str]()
    for page in PAGES:
        async with browser.get(page) as answer:
            named |= set(re.findall(r'(?:href|src)="(/static/[^"]*)"', await answer.text()))
    return sorted(named)


async def test_pages_name_files_by_one_digest_and_these_are_kept_for_good(viewing: Viewing) -> None:
    async with viewing(POD.batch()) as (_, browser):
        named = await addresses(browser)
        names = {name.rpartition("/")[2] for name in named}
        assert names >= {"page.css", "story.css", "waterfall.css", "waterfall.js", "live.js", "icon.svg"}
        assert len({name.rpartition("/")[0] for name in named}) == 1
        assert all(re.fullmatch(r"/static/[0-9a-f]{16}/[\w.]+", name) for name in named)
        for name in named:
            async with browser.get(name) as kept, browser.get(re.sub("/[0-9a-f]{16}/", "/", name)) as plain:
                assert (kept.status, plain.status) == (200, 200)
                assert await kept.read() == await plain.read()
                assert kept.headers["Cache-Control"] == "public, max-age=31536000, immutable"
                assert plain.headers["Cache-Control"] == "no-store"
                for header in ("Content-Type", "Content-Security-Policy", "Cross-Origin-Resource-Policy"):
                    assert kept.headers[header] == plain.headers[header]


async def test_whatever_scripts_import_stands_beside_them(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        (icon,) = [name for name in await addresses(browser) if name.endswith("icon.svg")]
        for one in (files(package) / "static").iterdir():
            async with browser.get(icon.replace("icon.svg", one.name)) as answer:
                assert await answer.read() == one.read_bytes()


async def test_other_digests_and_names_are_not_found_and_that_is_not_kept(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        (icon,) = [name for name in await addresses(browser) if name.endswith("icon.svg")]
        for address in (
            f"/static/{'0' * 16}/icon.svg",
            icon.replace("icon.svg", "nothing.css"),
            icon.replace("icon.svg", "..%2Fsite.py"),
            icon.replace("/icon.svg", "/"),
            icon.replace("/icon.svg", ""),
            "/static//icon.svg",
            "/static/site.py",
        ):
            async with browser.get(address) as answer:
                assert (answer.status, answer.headers["Cache-Control"]) == (404, "no-store"), address


def test_every_change_of_a_file_is_another_digest() -> None:
    versions = [
        {"a.css": b"x"},
        {"a.css": b"y"},
        {"b.css": b"x"},
        {"a.css": b"x", "b.css": b""},
        {"a.css": b"xb.css 0\n"},
    ]
    assert len({static_files.digest(bodies) for bodies in versions}) == len(versions)
    assert static_files.digest({"a": b"1", "b": b"2"}) == static_files.digest({"b": b"2", "a": b"1"})


def test_a_name_that_no_file_has_is_no_address() -> None:
    with pytest.raises(KeyError, match=r"other\.css"):
        static_files.StaticFiles().path("other.css")


async def test_the_style_of_every_page_is_one_file(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        async with browser.get("/static/page.css") as answer:
            joined = await answer.text()
        places = []
        for name in static_files._JOINED:
            async with browser.get(f"/static/{name}") as answer:
                places.append(joined.index(await answer.text()))
        assert places == sorted(places)
        assert places[0] == 0


@pytest.mark.slow
async def test_a_browser_asks_for_a_file_once(viewing: Viewing, browse: Browse) -> None:
    async with viewing(POD.batch()) as (viewer, _), browse() as browser:
        await browser.listen()
        await browser.look(width=1280)
        pages = [f"{viewer.page}traces/{POD.trace_id.hex()}", viewer.page, f"{viewer.page}pods/{POD.uid}"]
        loaded = []
        for page in (*pages, pages[0]):
            await browser.open(page)
            loaded.append(await browser.says(LOADED))
        names = [{name for name, _ in files} for files in loaded]
        assert names[0] == names[3] >= {"page.css", "story.css", "waterfall.js", "waterfall_rows.js", "icon.svg"}
        assert all({"page.css", "live.js"} <= some for some in names)
        asked = [{name for name, over_the_net in files if over_the_net} for files in loaded]
        assert asked == [names[0], set(), set(), set()]
        assert browser.complaints == []
