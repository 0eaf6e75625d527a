"""Styles, scripts and the icon: by their name, and by an address with their digest that a browser asks for once."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from aiohttp import hdrs, web

from podtrail import pages

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_JOINED: Final = ("common.css", "podtrail.css", "live.css", "reports.css", "shape.css", "find.css")
"""The style of every page, one file in this order: `page.css`."""
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
"""Public also where a login is asked for: these files are the package's, and tell nothing of a cluster."""


def digest(bodies: Mapping[str, bytes]) -> str:
    """Return another text for other files."""
    told = sha256()
    for name, body in sorted(bodies.items()):
        told.update(f"{name} {len(body)}\n".encode() + body)
    return told.hexdigest()[:16]


class StaticFiles:
    """Answers with files of the package, which are read once. One digest is of all: scripts name others beside them."""

    def __init__(self) -> None:
        found = {
            one.name: one.read_bytes()
            for one in (*(files(__package__) / "static").iterdir(), files(pages) / "templates" / "common.css")
        }
        self._files = {**found, "page.css": b"".join(found[name] for name in _JOINED)}
        self._digest = digest(self._files)

    def path(self, name: str) -> str:
        """Return the address of a file as it is now.

        Raises:
            KeyError: there is no such file.
        """
        if name not in self._files:
            raise KeyError(name)
        return f"/static/{self._digest}/{name}"

    def routes(self) -> list[web.RouteDef]:
        """Return its addresses."""
        return [web.get("/static/{name}", self._file), web.get("/static/{digest}/{name}", self._file)]

    async def _file(self, request: web.Request) -> web.Response:
        name, asked = request.match_info["name"], request.match_info.get("digest")
        if name not in self._files or asked not in (None, self._digest):
            raise web.HTTPNotFound
        headers = {hdrs.CACHE_CONTROL: _FOR_GOOD} if asked else {}
        kind = _TYPES[name[name.rindex(".") :]]
        return web.Response(body=self._files[name], content_type=kind, charset="utf-8", headers=headers)


@cache
def static_files() -> StaticFiles:
    """Return those of this process: a viewer that a reload starts reads none anew."""
    return StaticFiles()
