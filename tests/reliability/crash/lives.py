"""Lives of podtrail: started, told, killed, and waited for."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests import forks

PATIENCE = 120.0
"""Seconds after which what did not come will not come any more."""
_HERE = Path(__file__).parent


class Life:
    """A process, from its start to its end."""

    def __init__(self, pid: int, log: Path, begins: int, ended: "asyncio.Task[int]") -> None:
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
                await asyncio.sleep(0.01)

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

    def __init__(self) -> None:
        self._ended: dict[forks.Fork, asyncio.Task[int]] = {}

    async def start(
        self,
        folder: Path,
        config: Mapping[str, Any],
        death: Mapping[str, Any] | None = None,
    ) -> Life:
        """Start podtrail in a folder, on a configuration; `death` as `interposed` has it."""
        path = folder / "config.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return await self.run("podtrail", ["run", "--config", str(path)], folder, death)

    async def run(
        self,
        program: str,
        arguments: Sequence[str],
        folder: Path,
        death: Mapping[str, Any] | None = None,
    ) -> Life:
        """Start podtrail or a program at a path in a folder, with arguments."""
        before: list[Sequence[Any]] = []
        if death:
            before.append((str(_HERE / "interposed.py"), "interpose", death, str(folder / "storage")))
        log = folder / "podtrail.log"
        log.touch()
        begins = log.stat().st_size
        # A umask of 0: what must not be read by others must say so itself.
        fork = forks.LoggedFork([program, *arguments], folder, forks.environment({}), log, umask=0, before=before)
        self._ended[fork] = asyncio.create_task(_end(fork))
        return Life(fork.pid, log, begins, self._ended[fork])

    async def kill(self) -> None:
        """Kill all that live."""
        for fork in self._ended:
            fork.kill()
        await asyncio.gather(*self._ended.values())


async def _end(fork: forks.Fork) -> int:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.add_reader(fork.fileno(), ended.set_result, None)
    try:
        await ended
    finally:
        loop.remove_reader(fork.fileno())
    return fork.wait()


@asynccontextmanager
async def zygote() -> AsyncIterator[Zygote]:
    """Give what starts lives; whoever lives at the end is killed."""
    made = Zygote()
    try:
        yield made
    finally:
        await made.kill()
