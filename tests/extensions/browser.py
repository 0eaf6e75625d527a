"""A real browser without a screen, driven over its DevTools protocol."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DEADLINE = 60.0
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
_SIDEWAYS = """
[...document.querySelectorAll("*")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX))
  .map((one) => one.outerHTML.slice(0, 80))
"""


class Browser:
    """One page of it, of a width and a colour scheme that can be set."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def look(self, *, width: int, dark: bool = False) -> None:
        """Set width and scheme for what is opened next."""
        await self._call("Page.enable")
        await self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self._call("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, url: str) -> None:
        """Return when the page is loaded."""
        await self._call("Page.navigate", until="Page.loadEventFired", url=url)

    async def says(self, expression: str) -> Any:
        """Return what an expression comes to on the page."""
        answer = await self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def sideways(self) -> list[str]:
        """Return what can be scrolled sideways: the page itself, or parts of it as they begin."""
        whole, inner = "document.scrollingElement.scrollWidth", "document.documentElement.clientWidth"
        page = await self.says(f"{whole} > {inner} ? `the page: ${{{whole}}} px` : ''")
        return [*filter(None, [page]), *await self.says(_SIDEWAYS)]

    async def picture(self, path: Path) -> None:
        """Write the whole page as PNG."""
        answer = await self._call("Page.captureScreenshot", captureBeyondViewport=True)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    async def _call(self, method: str, until: str = "", **parameters: Any) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        result, seen = None, not until
        while result is None or not seen:
            told = await self._socket.receive_json(timeout=DEADLINE)
            seen = seen or told.get("method") == until
            if told.get("id") == self._number:
                assert "error" not in told, told
                result = told["result"]
        return result


@asynccontextmanager
async def browsing(profile: Path) -> AsyncIterator[Browser]:
    """Start the browser with a profile of its own, and end it."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE):
            while b"DevTools listening on ws://" not in (line := await process.stderr.readline()):
                assert line, "the browser ended before it listened"
            address = line.split(b"ws://")[1].split(b"/")[0].decode()
        drain = asyncio.create_task(process.stderr.read())
        async with ClientSession() as session:
            async with session.get(f"http://{address}/json/list") as answer:
                (page,) = [one for one in json.loads(await answer.read()) if one["type"] == "page"]
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Browser(socket)
        process.terminate()
        await drain
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
