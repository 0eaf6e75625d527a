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
DEADLINE = 120.0
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-lcd-text", "--disable-component-update", "--disable-dev-shm-usage"),
)
_SIDEWAYS = """
[...document.querySelectorAll("*")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX))
  .map((one) => one.outerHTML.slice(0, 80))
"""
_CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class Browser:
    """One page of it, of a width and a colour scheme that can be set."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.asked: list[str] = []
        """Addresses that were requested, once `listen` was called."""
        self.complaints: list[str] = []
        """Errors and warnings of the console, refusals of the content policy among them, once `listen` was called."""

    async def listen(self) -> None:
        """Take note of requests and complaints from now on."""
        for domain in ("Network", "Runtime", "Log"):
            await self._call(f"{domain}.enable")

    async def look(
        self, *, width: int, dark: bool = False, forced: bool = False, still: bool = False, height: int = 900
    ) -> None:
        """Set size and scheme for what is opened next; `forced` colours; `still`: motion is to be reduced."""
        await self._call("Page.enable")
        await self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "forced-colors": "active" if forced else "none",
            "prefers-reduced-motion": "reduce" if still else "no-preference",
        }
        await self._call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()]
        )

    async def script(self, *, runs: bool) -> None:
        """Set whether scripts of what is opened next run; `says` works all the same."""
        await self._call("Emulation.setScriptExecutionDisabled", value=not runs)

    async def allow(self, *permissions: str) -> None:
        """Grant pages what a person is asked for elsewhere, by the protocol's names."""
        await self._call("Browser.grantPermissions", permissions=list(permissions))

    async def open(self, url: str) -> None:
        """Return when the page is loaded."""
        await self._call("Page.navigate", until="Page.loadEventFired", url=url)

    async def says(self, expression: str) -> Any:
        """Return what an expression, or the promise it makes, comes to on the page."""
        answer = await self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Return when an expression is true on the page."""
        look = f"const look = () => ({expression}) ? told(true) : setTimeout(look, 20)"
        told = await self._call(
            "Runtime.evaluate", expression=f"new Promise((told) => {{ {look}; look(); }})", awaitPromise=True
        )
        assert told["result"].get("value") is True, (expression, told)

    async def mouse(self, kind: str, x: float, y: float, *, loads: bool = False) -> None:
        """Move the pointer somewhere (`mouseMoved`), or press (`mousePressed`), or let go (`mouseReleased`) there.

        `loads`: return when the page it leads to is loaded.
        """
        button: dict[str, Any] = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        load = "Page.loadEventFired" if loads else ""
        await self._call("Input.dispatchMouseEvent", until=load, type=kind, x=x, y=y, **button)

    async def press(self, key: str, modifiers: int = 0, *, loads: bool = False) -> None:
        """Press a key, by its name; `modifiers`: 8 for Shift; `loads`: return when the page it leads to is loaded."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        about: dict[str, Any] = {"key": key, "modifiers": modifiers}
        about["windowsVirtualKeyCode"] = _CODES.get(key) or ord(key[0].upper())
        await self._call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        load = "Page.loadEventFired" if loads else ""
        await self._call("Input.dispatchKeyEvent", until=load, type="keyUp", **about)

    async def sideways(self) -> list[str]:
        """Return what can be scrolled sideways: the page itself, or parts of it as they begin."""
        whole, inner = "document.scrollingElement.scrollWidth", "document.documentElement.clientWidth"
        page = await self.says(f"{whole} > {inner} ? `the page: ${{{whole}}} px` : ''")
        return [*filter(None, [page]), *await self.says(_SIDEWAYS)]

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write what is seen, or the whole page, as PNG or WebP."""
        kind = {"format": "webp", "quality": 80} if path.suffix == ".webp" else {"format": "png"}
        answer = await self._call("Page.captureScreenshot", captureBeyondViewport=whole, **kind)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    async def _call(self, method: str, until: str = "", **parameters: Any) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        result, seen = None, not until
        while result is None or not seen:
            told = await self._socket.receive_json(timeout=DEADLINE)
            seen = seen or told.get("method") == until
            self._note(told.get("method", ""), told.get("params", {}))
            if told.get("id") == self._number:
                assert "error" not in told, told
                result = told["result"]
        return result

    def _note(self, event: str, told: dict[str, Any]) -> None:
        match event:
            case "Network.requestWillBeSent":
                self.asked.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(told["exceptionDetails"])[:600])
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(told["args"])[:600])
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")


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
