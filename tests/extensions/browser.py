"""A real browser without a screen, driven over its DevTools protocol."""

import asyncio
import base64
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

from tests.recorder import report_log

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

    def __init__(self, socket: ClientWebSocketResponse, context: str = "") -> None:
        self._socket = socket
        self._context = context
        self._number = 0
        self.asked: list[str] = []
        """Addresses that were requested, once `listen` was called."""
        self.complaints: list[str] = []
        """Errors and warnings of the console, refusals of the content policy among them, once `listen` was called."""

    async def listen(self) -> None:
        """Take note of requests and complaints from now on."""
        for domain in ("Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def look(
        self, *, width: int, dark: bool = False, forced: bool = False, still: bool = False, height: int = 900
    ) -> None:
        """Set size and scheme for what is opened next; `forced` colours; `still`: motion is to be reduced."""
        await self.call("Page.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "forced-colors": "active" if forced else "none",
            "prefers-reduced-motion": "reduce" if still else "no-preference",
        }
        await self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()]
        )

    async def script(self, *, runs: bool) -> None:
        """Set whether scripts of what is opened next run; `says` works all the same."""
        await self.call("Emulation.setScriptExecutionDisabled", value=not runs)

    async def allow(self, *permissions: str) -> None:
        """Grant pages what a person is asked for elsewhere, by the protocol's names."""
        await self.call("Browser.grantPermissions", permissions=list(permissions), browserContextId=self._context)

    async def open(self, url: str) -> None:
        """Return when the page is loaded."""
        await self.call("Page.navigate", until="Page.loadEventFired", url=url)

    async def says(self, expression: str) -> Any:
        """Return what an expression, or the promise it makes, comes to on the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Return when an expression is true on the page."""
        look = f"const look = () => ({expression}) ? told(true) : setTimeout(look, 20)"
        told = await self.call(
            "Runtime.evaluate", expression=f"new Promise((told) => {{ {look}; look(); }})", awaitPromise=True
        )
        assert told["result"].get("value") is True, (expression, told)

    async def mouse(self, kind: str, x: float, y: float, *, loads: bool = False) -> None:
        """Move the pointer somewhere (`mouseMoved`), or press (`mousePressed`), or let go (`mouseReleased`) there.

        `loads`: return when the page it leads to is loaded.
        """
        button: dict[str, Any] = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        load = "Page.loadEventFired" if loads else ""
        await self.call("Input.dispatchMouseEvent", until=load, type=kind, x=x, y=y, **button)

    async def press(self, key: str, modifiers: int = 0, *, loads: bool = False) -> None:
        """Press a key, by its name; `modifiers`: 8 for Shift; `loads`: return when the page it leads to is loaded."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        about: dict[str, Any] = {"key": key, "modifiers": modifiers}
        about["windowsVirtualKeyCode"] = _CODES.get(key) or ord(key[0].upper())
        await self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        load = "Page.loadEventFired" if loads else ""
        await self.call("Input.dispatchKeyEvent", until=load, type="keyUp", **about)

    async def sideways(self) -> list[str]:
        """Return what can be scrolled sideways: the page itself, or parts of it as they begin."""
        whole, inner = "document.scrollingElement.scrollWidth", "document.documentElement.clientWidth"
        page = await self.says(f"{whole} > {inner} ? `the page: ${{{whole}}} px` : ''")
        return [*filter(None, [page]), *await self.says(_SIDEWAYS)]

    async def sideways_at(self, address: str, *widths: int) -> list[str]:
        """Return what can be scrolled sideways on a page in windows of these widths, with all its folds open."""
        await self.look(width=widths[0])
        await self.open(address)
        found: list[str] = []
        for width in widths:
            await self.look(width=width)
            assert await self.says("innerWidth") == width
            assert await self.says("document.querySelector('header.top') !== null"), address
            await self.says("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            found += [f"{address} at {width}: {what}" for what in await self.sideways()]
        return found

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write what is seen, or the whole page, as PNG or WebP."""
        kind = {"format": "webp", "quality": 80} if path.suffix == ".webp" else {"format": "png"}
        answer = await self.call("Page.captureScreenshot", captureBeyondViewport=whole, **kind)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    async def call(self, method: str, until: str = "", **parameters: Any) -> Any:
        """Return what a method of the protocol answers, once an event was told where one is waited for."""
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


Browse = Callable[[], AbstractAsyncContextManager[Browser]]


class Chromium:
    """A browser's process; each of its pages is opened as by a person of their own, without what others left behind."""

    def __init__(self, profile: Path) -> None:
        """Start it, with a folder for what it keeps."""
        assert PROGRAM is not None
        self.log: list[str] = []
        self._process = subprocess.Popen(
            [PROGRAM, *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        late = Timer(DEADLINE, self._process.kill)
        late.start()
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                break
        late.cancel()
        assert found, f"the browser ended before it listened: {''.join(self.log)}"
        self._address = found[1]
        self._reader = Thread(target=self.log.extend, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        assert self._process.stderr is not None
        self._process.stderr.close()

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Browser]:
        """Open a page, and close it."""
        async with ClientSession() as session, session.ws_connect(self._address, max_msg_size=0) as socket:
            whole = Browser(socket)
            context = (await whole.call("Target.createBrowserContext"))["browserContextId"]
            target = await whole.call("Target.createTarget", url="about:blank", browserContextId=context)
            address = f"{self._address.partition('/devtools/')[0]}/devtools/page/{target['targetId']}"
            try:
                async with session.ws_connect(address, max_msg_size=0) as own:
                    yield Browser(own, context)
            finally:
                await whole.call("Target.disposeBrowserContext", browserContextId=context)


@asynccontextmanager
async def browsing(profile: Path) -> AsyncIterator[Browser]:
    """Open a page of a browser of its own."""
    with closing(Chromium(profile)) as chromium:
        async with chromium.page() as page:
            yield page


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The browser of all tests of this process."""
    if PROGRAM is None:
        pytest.skip("needs chromium")
    with closing(Chromium(tmp_path_factory.mktemp("chromium"))) as started:
        yield started


@pytest.fixture
def browse(chromium: Chromium) -> Iterator[Browse]:
    """Open pages in it, as with `browsing`."""
    with report_log("chromium's log", lambda: "".join(chromium.log)):
        yield chromium.page
