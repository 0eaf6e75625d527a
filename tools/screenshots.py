"""Pictures of every view of the page for docs/page.md: light, dark and narrow, of ten minutes of the main job."""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from aiohttp import ClientSession

from tests.extensions.browser import PROGRAM, Browser, browsing
from tests.page.running import running
from tests.page.site_map import links

IMAGES = Path(__file__).parents[1] / "docs" / "images"


class Look(NamedTuple):
    """How a view is looked at."""

    suffix: str
    width: int
    height: int
    dark: bool


LOOKS = (Look("", 1280, 900, False), Look("-dark", 1280, 900, True), Look("-narrow", 380, 900, False))


class View(NamedTuple):
    """A kind of page."""

    name: str
    """Of its pictures."""
    start: str
    follow: tuple[str, ...] = ()
    """Patterns of the links that lead there from the start, each of a page's first that matches."""

    def pictures(self) -> Iterator[str]:
        """Return the names of the pictures' files."""
        return (f"{self.name}{look.suffix}.webp" for look in LOOKS)


VIEWS = (
    View("pods", "/"),
    View("search", "/?q=plugin:NodeResourcesFit+attempts:%3E3&state=all"),
    View("pod", "/pods/default/frozen-0"),
    View("attempts", "/pods/default/huge-0", (r"/pods/[^/]+/attempts\?",)),
    View("attempt", "/pods/default/huge-0", (r"/pods/[^/]+/attempts/",)),
    View("compare", "/pods/default/frozen-0", (r"/pods/[^/]+/attempts/", r"/pods/[^/]+/compare")),
    View("traces", "/traces"),
    View("trace", "/?state=slow", (r"/pods/", r"/traces/")),
    View("nodes", "/nodes"),
    View("node", "/nodes", (r"/nodes/node-",)),
    View("plugins", "/plugins"),
    View("plugin", "/plugins/NodeResourcesFit"),
    View("policies", "/policies"),
    View("decision", "/policies", (r"/decisions/",)),
    View("incident", "/incident"),
)


async def address(client: ClientSession, root: str, view: View) -> str:
    """Return path and query of a view. LookupError when no link leads there."""
    here = view.start
    for pattern in view.follow:
        async with client.get(urljoin(root, here)) as answer:
            found = [link for link in links(await answer.text(), here) if re.match(pattern, link)]
        if not found:
            raise LookupError(f"{view.name}: no link to {pattern} on {here}")
        here = found[0]
    return here


async def _take(root: str, profile: Path, names: list[str]) -> None:
    views = [view for view in VIEWS if not names or view.name in names]
    IMAGES.mkdir(exist_ok=True)
    async with ClientSession() as client, browsing(profile) as browser:
        for look in LOOKS:
            await browser.look(width=look.width, height=look.height, dark=look.dark, still=True)
            for view in views:
                await browser.open(urljoin(root, await address(client, root, view)))
                await _picture(browser, IMAGES / f"{view.name}{look.suffix}.webp")


async def _picture(browser: Browser, path: Path) -> None:
    settled: Any = "document.fonts.ready.then(() => new Promise((told) => requestAnimationFrame(() => told(true))))"
    assert await browser.says(settled)
    await browser.picture(path, whole=False)


def main() -> None:
    """Take all pictures, or those of the views that are named."""
    if PROGRAM is None:
        sys.exit("screenshots: needs chromium")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), length="10m", arrival_rate=0.5) as root:
        asyncio.run(_take(root, Path(folder) / "profile", sys.argv[1:]))
    size = sum(path.stat().st_size for path in IMAGES.iterdir())
    print(f"{IMAGES}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
