"""Which pages the site has, found by following its links: each kind of page a few times, and what can't be found."""

from collections import Counter, deque
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from aiohttp import ClientSession

_OF_A_KIND = 3
_MOST = 200
MISSING = ("/nowhere", "/?sort=nothing", "/pods/none", f"/traces/{'0' * 32}", f"/decisions/{'0' * 32}")
"""Pages that say that there is nothing."""


class Kind(NamedTuple):
    """What pages with the same template have in common, as far as an address tells."""

    place: str
    """The first part of the path, and how many follow it."""
    asked: tuple[str, ...]
    """The names in the query."""

    @classmethod
    def of(cls, address: str) -> "Kind":
        parts = urlsplit(address)
        first, *rest = parts.path.strip("/").split("/")
        return cls("/".join([first, *("*" for _ in rest)]), tuple(sorted({key for key, _ in parse_qsl(parts.query)})))


class Page(NamedTuple):
    """What an address was answered with."""

    address: str
    """Path and query."""
    status: int
    kind: Kind
    shown: bool
    """It is HTML for the browser; else a file to keep, or what programs read."""
    policy: str
    """Its Content-Security-Policy."""
    found_on: str
    """The address of the page that has the first link there."""


async def pages(root: str, *, of_a_kind: int = _OF_A_KIND) -> list[Page]:
    """Return the pages that a browser shows, in the order in which links lead to them."""
    return [page for page in await answers(root, of_a_kind=of_a_kind) if page.shown]


async def answers(root: str, *, of_a_kind: int = _OF_A_KIND) -> list[Page]:
    """Return what links lead to, in their order, from each page at most one of a kind."""
    found: list[Page] = []
    seen: Counter[Kind] = Counter()
    waiting = deque(("/", *MISSING))
    known = dict.fromkeys(waiting, "")
    async with ClientSession() as client:
        while waiting and len(found) < _MOST:
            address = waiting.popleft()
            async with client.get(urljoin(root, address)) as answer:
                shown = answer.content_type == "text/html" and answer.content_disposition is None
                policy = answer.headers.get("Content-Security-Policy", "")
                found.append(Page(address, answer.status, Kind.of(address), shown, policy, known[address]))
                text = await answer.text() if shown else ""
            here: set[Kind] = set()
            for link in links(text, address):
                kind = Kind.of(link)
                if link not in known and kind not in here and seen[kind] < of_a_kind:
                    here.add(kind)
                    known[link] = address
                    seen[kind] += 1
                    waiting.append(link)
    return found


def links(text: str, address: str) -> Iterator[str]:
    """Return path and query of the links of a page to the site itself."""
    parser = _Links()
    parser.feed(text)
    for link in parser.found:
        parts = urlsplit(urljoin(address, link))
        if not parts.netloc:
            yield parts._replace(fragment="").geturl()


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "a" and told.get("href"):
            self.found.append(told["href"] or "")
