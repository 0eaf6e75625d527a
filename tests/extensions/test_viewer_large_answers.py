import asyncio
from contextlib import suppress

import pytest
from podtrail_extensions.viewer import large_answers

from podtrail.testing.attempts import MadeAttempt
from tests.extensions.asking import Viewing

PATIENCE = 60
SIZE = 8 << 20


async def ask(stream: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    """Ask, and read no more than the status."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        return int((await stream.readline()).split()[1])


class Clock(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@pytest.mark.parametrize("stuck", [False, True])
def test_large_answers_that_nobody_reads_are_bounded(
    viewing: Viewing, *, stuck: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(large_answers, "_MOST", 3 * SIZE // 2)
    monkeypatch.setattr(large_answers, "_STUCK", 10 * PATIENCE)
    made = MadeAttempt(attributes={"long": "x" * SIZE})
    path = f"/traces/{made.trace_id.hex()}/otlp.json"
    clock = Clock()

    async def main() -> None:
        async with viewing(max_mib=512) as (viewer, browser):
            viewer.library.keep(made.groups(), 1)
            port = int(viewer.page.rstrip("/").rpartition(":")[2])
            slow = await asyncio.open_connection("localhost", port, limit=1024)
            assert await ask(*slow, path) == 200
            async with browser.get(path) as refused:
                assert refused.status == 503
                assert "try again later" in (await refused.json())["error"]
            async with browser.get("/") as small:
                assert small.status == 200
            if stuck:
                clock.ahead = 10 * PATIENCE
            else:
                slow[1].transport.abort()
            async with asyncio.timeout(PATIENCE):
                while True:  # until it is noticed that nobody reads
                    async with browser.get(path) as answer:
                        if answer.status == 200:
                            assert len(await answer.read()) > SIZE
                            break
            if stuck:
                assert await what_came(slow[0]) < SIZE  # it was let go
            slow[1].transport.abort()

    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        runner.run(main())
    assert caplog.messages == []  # who leaves is no error


async def what_came(stream: asyncio.StreamReader) -> int:
    """Read what there is until the connection ends; how many bytes."""
    came = 0
    with suppress(ConnectionResetError):
        async with asyncio.timeout(PATIENCE):
            while part := await stream.read(1 << 16):
                came += len(part)
    return came


async def test_a_large_answer_has_the_headers_of_all(viewing: Viewing) -> None:
    made = MadeAttempt(attributes={"long": "x" * SIZE})

    async with viewing(max_mib=512) as (viewer, browser):
        viewer.library.keep(made.groups(), 1)
        for ask in (browser.get, browser.head):
            async with ask(f"/traces/{made.trace_id.hex()}/otlp.json") as answer:
                assert answer.status == 200
                assert answer.headers["Server"] == "podtrail"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert int(answer.headers["Content-Length"]) > SIZE
