"""Lives of podtrail: started by the zygote, told, killed, and waited for."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds after which what did not come will not come any more."""
ZYGOTE = Path(__file__).parent / "zygote.py"


class Life:
    """A process, from its start to its end."""

    def __init__(self, pid: int, log: Path, begins: int, ended: "asyncio.Future[int]") -> None:
        self.pid = pid
        self.ended = ended
        self._log = log
        self._begins = begins

    @property
    def said(self) -> str:
        """What it has said so far on standard error."""
        with self._log.open("rb") as file:
            file.seek(self._begins)
            return file.read().decode()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended.done()

    def tell(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if not self.over:
            with suppress(ProcessLookupError):  # it has just ended, and nobody has told yet
                os.kill(self.pid, number)

    async def end(self, seconds: float = PATIENCE) -> int:
        """Wait for the end; return the exit code, negative for a signal."""
        return await asyncio.wait_for(asyncio.shield(self.ended), seconds)

    async def says(self, pattern: str) -> re.Match[str] | None:
        """Wait until it says something; None when it ended without."""
        async with asyncio.timeout(PATIENCE):
            while True:
                over = self.over
                if (match := re.search(pattern, self.said)) or over:
                    return match
                await asyncio.sleep(0.003)

    async def ports(self) -> tuple[int, int] | None:
        """Wait until it is ready; return the ports of gRPC and HTTP, None when it ended before."""
        found = []
        for pattern in (r"listening on [^ ]*:(\d+) \(grpc\)", r"listening on [^ ]*:(\d+) \(http\)", "ready: ()"):
            if (match := await self.says(pattern)) is None:
                return None
            found.append(match[1])
        return int(found[0]), int(found[1])


class Zygote:
    """What starts lives."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._started: asyncio.Queue[int] = asyncio.Queue()
        self._ended: dict[int, asyncio.Future[int]] = {}

    async def listen(self) -> None:
        """Take note of what it tells, until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            told = json.loads(line)
            if "status" in told:
                self._future(told["pid"]).set_result(told["status"])
            elif "pid" in told:
                # The number of one that ended is given again some day.
                self._ended.pop(told["pid"], None)
                self._started.put_nowait(told["pid"])

    def _future(self, pid: int) -> "asyncio.Future[int]":
        return self._ended.setdefault(pid, asyncio.get_running_loop().create_future())

    async def start(
        self,
        folder: Path,
        config: Mapping[str, Any],
        death: Mapping[str, Any] | None = None,
        haste: float = 1,
    ) -> Life:
        """Start podtrail in a folder, on a configuration; `death` as `interposed` has it."""
        path = folder / "config.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return await self.run("podtrail", ["run", "--config", str(path)], folder, death, haste)

    async def run(
        self,
        program: str,
        arguments: Sequence[str],
        folder: Path,
        death: Mapping[str, Any] | None = None,
        haste: float = 1,
    ) -> Life:
        """Start podtrail or a program at a path in a folder, with arguments."""
        log = folder / "log"
        log.touch()
        begins = log.stat().st_size
        order = {
            "program": program,
            "arguments": arguments,
            "folder": str(folder),
            "log": str(log),
            "death": death,
            "haste": haste,
            "store": str(folder / "storage"),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        async with asyncio.timeout(PATIENCE):
            pid = await self._started.get()
        return Life(pid, log, begins, self._future(pid))

    def kill(self) -> None:
        """Kill all that live."""
        for pid, ended in self._ended.items():
            if not ended.done():
                os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def zygote() -> AsyncIterator[Zygote]:
    """Run a zygote."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PYTHON"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ZYGOTE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment
    )
    made = Zygote(process)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        made.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        listening.cancel()
