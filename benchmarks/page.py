"""First paint of 10,000 Pods and frames over 5,000 spans, both in Chromium; how long each page keeps the loop.

The viewer runs in this process, as it does beside receivers, and the browser in its own.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urljoin
from urllib.request import urlopen

from podtrail_extensions.viewer import FACTORY
from podtrail_extensions.viewer.extension import Viewer

from podtrail.cli.run import TURN
from podtrail.component import Context
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import MS, MadeAttempt, No
from tests.extensions.browser import PROGRAM, Browser, browsing
from tests.page.site_map import Kind, answers

PODS: Final = 10_000
SPANS: Final = 5_000
ROUNDS: Final = 9
FRAMES: Final = 240
BOUND_PAINT: Final = 100.0
BOUND_STILL: Final = 5.0
"""Milliseconds that an answer may keep the loop, on which spans come in as well."""
_TRACE: Final = bytes(range(16))
_PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')"
_DRAWN: Final = f"document.getElementById('wf-grid')?.scrollHeight > {10 * SPANS}"
_SCROLLED: Final = f"""
new Promise((told) => {{
  const all = [...document.querySelectorAll("main *"), document.scrollingElement];
  const most = all.reduce((one, other) =>
    one.scrollHeight - one.clientHeight >= other.scrollHeight - other.clientHeight ? one : other);
  const lasted = [];
  let before = performance.now();
  const step = (now) => {{
    lasted.push(now - before);
    before = now;
    most.scrollTop += 300;
    if (lasted.length <= {FRAMES}) requestAnimationFrame(step); else told([lasted.slice(1), most.scrollTop]);
  }};
  requestAnimationFrame(step);
}})
"""


def attempts(now: int) -> list[MadeAttempt]:
    """Return an attempt a Pod, one in ten without success."""
    made = []
    for number in range(PODS):
        start = now - (PODS - number) * 60 * MS
        about = {"uid": f"{number:08x}-0000-4000-8000-000000000000", "name": f"web-{number}"}
        if number % 10:
            made.append(MadeAttempt(**about, start=start, node=f"node-{number % 500}"))  # type: ignore[arg-type]
            continue
        no = No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=[f"node-{one}" for one in range(30)])
        made.append(
            MadeAttempt(**about, start=start, result="Unschedulable", refusals=[no])  # type: ignore[arg-type]
        )
    return made


def large_trace(now: int) -> Group:
    """Return a trace of three levels: a root, fifty below it, and the rest below these."""
    spans = []
    for number in range(SPANS):
        above = None if not number else 0 if number <= 50 else number % 50 + 1
        spans.append(
            encode_span(
                trace_id=_TRACE,
                span_id=(number + 1).to_bytes(8, "big"),
                parent_span_id=b"" if above is None else (above + 1).to_bytes(8, "big"),
                name=f"step {number}",
                start=now + number * MS // 10,
                end=now + (SPANS + number % 7) * MS // 10,
            )
        )
    resource = resource_header({"service.name": "controller"})
    return Group(resource, scope_header("controller"), _TRACE, frame(spans), SPANS)


@asynccontextmanager
async def viewing() -> AsyncIterator[Viewer]:
    """Run a viewer that holds nothing yet."""
    config = {"endpoint": "localhost:0", "otlp_endpoint": "localhost:0", "max_mib": 512, "max_decisions_mib": 64}
    viewer: Viewer = FACTORY.create(FACTORY.Config.model_validate(config), Context(id="viewer"))
    async with viewer:
        yield viewer


async def painted(browser: Browser, address: str) -> float:
    """Return the milliseconds from the request to the first paint with content."""
    await browser.open(address)
    await browser.until(f"{_PAINTED}.length > 0")
    return float(await browser.says(f"{_PAINTED}[0].startTime"))


async def stands_still(address: str) -> float:
    """Return the longest time, in milliseconds, for which the loop did nothing else while a page was answered."""
    over = asyncio.Event()

    async def watch() -> float:
        longest = 0.0
        while not over.is_set():
            began = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - began)
        return 1e3 * longest

    watching = asyncio.create_task(watch())
    await asyncio.to_thread(_read, address)
    over.set()
    return await watching


def _read(address: str) -> None:
    with urlopen(address, timeout=60) as answer:
        answer.read()


def told(name: str, measured: list[float], beside: list[float] | None = None) -> str:
    """Return a line: minimum and median in ms, and the ratio of the minima."""
    ratio = f", {min(measured) / min(beside):.2f} of the empty page" if beside else ""
    return f"{name:<34} {min(measured):7.1f} {statistics.median(measured):7.1f} ms{ratio}"


async def _paints(browser: Browser, full: Viewer, empty: Viewer) -> None:
    views = {"Pods to look at": "", "all Pods": "?state=all", "5,000 spans": f"traces/{_TRACE.hex()}"}
    found: dict[str, list[float]] = {name: [] for name in ("empty", *views)}
    for _ in range(ROUNDS):
        found["empty"].append(await painted(browser, empty.page))
        for name, path in views.items():
            found[name].append(await painted(browser, urljoin(full.page, path)))
    print(f"first paint, minimum and median of {ROUNDS}")
    for name, measured in found.items():
        print(" ", told(name, measured, found["empty"] if name != "empty" else None))
    worst = max(min(found[name]) for name in views)
    print(f"  bound {BOUND_PAINT:.0f} ms: {'holds' if worst <= BOUND_PAINT else 'missed'}")


async def _frames(browser: Browser, full: Viewer, empty: Viewer) -> None:
    print(f"{FRAMES} frames while scrolling: median, 95th percentile, longest")
    for name, address in (("empty", empty.page), ("5,000 spans", f"{full.page}traces/{_TRACE.hex()}")):
        await browser.open(address)
        if address != empty.page:
            await browser.until(_DRAWN)
        lasted, by = await browser.says(_SCROLLED)
        ordered = sorted(lasted)
        shares = ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))], ordered[-1]
        rate = 1e3 * len(lasted) / sum(lasted)
        print(
            f"  {name:<34} " + " ".join(f"{one:7.1f}" for one in shares) + f" ms, {rate:.1f} a second, by {by:.0f} px"
        )


async def _stand_stills(full: Viewer) -> None:
    by_kind: dict[Kind, str] = {}
    for page in await answers(full.page, of_a_kind=1):
        if page.status < 400 and len(page.kind.asked) < 2:
            by_kind.setdefault(page.kind, page.address)
    by_kind[Kind.of("/traces/large")] = f"/traces/{_TRACE.hex()}"
    print(f"the loop stands still, with {PODS:,} Pods held: minimum and median of {ROUNDS}")
    for kind, address in sorted(by_kind.items()):
        measured = [await stands_still(urljoin(full.page, address)) for _ in range(ROUNDS)]
        asked = f"?{'&'.join(kind.asked)}" if kind.asked else ""
        late = f"  over {BOUND_STILL:.0f} ms" if min(measured) > BOUND_STILL else ""
        print(" ", told(f"/{kind.place}{asked}", measured) + late)


async def _measure(profile: Path) -> None:
    async with viewing() as full, viewing() as empty:
        now = time.time_ns()
        for attempt in attempts(now):
            batch = attempt.batch()
            full.observe("traces", batch)
            full.library.keep(batch.groups, now)
        trace = large_trace(now - SPANS * MS)
        full.observe("traces", Batch([trace], now))
        full.library.keep([trace], now)
        if PROGRAM is None:
            print("no chromium here: nothing is painted")
        else:
            async with browsing(profile) as browser:
                await browser.look(width=1280)
                await _paints(browser, full, empty)
                await _frames(browser, full, empty)
        await _stand_stills(full)


def main() -> None:
    sys.setswitchinterval(TURN)  # as podtrail run does
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder)))
