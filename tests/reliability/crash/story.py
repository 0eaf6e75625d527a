"""One folder, one load, many lives of podtrail that are ended in all manners; then the account of every span."""

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.reliability.crash.account import Account, account
from tests.reliability.crash.arrivals import arrivals, differences
from tests.reliability.crash.lives import Life, Zygote
from tests.reliability.crash.load import Client, Request
from tests.reliability.crash.recorder import FileRecorder, Recorder, grpc_backend, http_backend
from tests.reliability.crash.sending import Outcome, Send, connected
from tests.reliability.crash.settings import Setting

Manner = Literal["load", "start", "reload", "stop"]
"""When a life is ended: under load, before it is ready, at SIGHUP, at SIGTERM."""
LONGEST = 0.4
"""Seconds of load after which a life is ended that has not come to the operation at which it was to be."""


class Kill(NamedTuple):
    """How a life is ended: at an operation on the store, or without one at a random time."""

    manner: Manner
    operation: str = ""
    nth: int = 0
    phase: str = ""

    def __str__(self) -> str:
        at = f"{self.phase} {self.operation} {self.nth}" if self.operation else "at a random time"
        return f"{self.manner}, {at}"


class Plan(NamedTuple):
    """All that makes a story, so that it can be told again."""

    setting: Setting
    seed: int
    kills: Sequence[Kill]
    clients: int = 4
    give_up: bool = False
    """Whether clients do not send again what they do not know to be taken."""


@dataclass
class Told:
    """What came of a story."""

    plan: Plan
    account: Account
    ended_by: Counter[str] = field(default_factory=Counter)
    """How lives ended: by manner and operation."""
    faults: list[str] = field(default_factory=list)


class Story:
    """Runs a plan."""

    def __init__(self, plan: Plan, folder: Path, zygote: Zygote) -> None:
        self._plan = plan
        folder.mkdir(parents=True)
        self._folder = folder
        self._zygote = zygote
        self._rng = random.Random(plan.seed)
        self._recorder = Recorder(slow=self._rng.choice((0.0, 0.005, 0.03)), rng=random.Random(plan.seed))
        self._file = FileRecorder(self._recorder, folder / "kept.jsonl") if plan.setting.exporter == "file" else None
        spans = 1 if plan.setting.load == "linked" else 4
        self._clients = [Client(plan.setting.load, plan.seed * 100 + n, spans) for n in range(plan.clients)]
        self._pending: dict[Client, list[Request]] = {client: [] for client in self._clients}
        self._requests: list[Request] = []
        self._changed = False
        """Whether the configuration is another than at first, in something that makes no difference to what is kept."""
        self._ended_by: Counter[str] = Counter()
        self._faults: list[str] = []

    async def run(self) -> Told:
        """Live all lives; return the account."""
        async with AsyncExitStack() as stack:
            if self._file is None:
                backend = http_backend if self._plan.setting.exporter == "otlp_http" else grpc_backend
                await stack.enter_async_context(backend(self._recorder))
            for kill in self._plan.kills:
                if not self._faults:
                    await self._live(kill)
            await self._last_life()
        accounted = account(self._plan.setting, self._clients, self._requests, self._recorder, self._ended_by.total())
        if self._plan.setting.durable:
            log = await asyncio.to_thread(arrivals, self._folder)
            accounted.otherwise = differences(self._config(), log, self._requests, self._recorder)
        return Told(self._plan, accounted, self._ended_by, self._faults)

    def _config(self) -> dict[str, Any]:
        wait = "2h" if self._changed else "1h"
        return self._plan.setting.configuration(self._folder, self._recorder.port, wait)

    async def _start(self, kill: Kill) -> Life:
        self._recorder.life += 1
        self._recorder.over = False
        aside = self._folder / "aside"
        aside.mkdir(exist_ok=True)
        death = {
            "operation": kill.operation,
            "nth": kill.nth,
            "phase": kill.phase,
            "stage": "start" if kill.manner == "start" else "told",
            "aside": str(aside),
        }
        return await self._zygote.start(self._folder, self._config(), death)

    async def _live(self, kill: Kill) -> None:
        life = await self._start(kill)
        if kill.manner == "start":
            await self._killed_starting(life, kill)
        elif (ports := await life.ports()) is None:
            self._faults.append(f"it did not start: {life.said[-2000:]}")
        else:
            await self._killed_running(life, kill, ports)
        code = await life.end()
        if self._file:
            self._file.look()
        self._judge(code, kill, life)

    async def _killed_starting(self, life: Life, kill: Kill) -> None:
        limit = LONGEST if kill.operation else self._rng.random() * LONGEST / 2
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await life.ports()
        self._recorder.over = True
        life.tell(signal.SIGKILL)

    async def _killed_running(self, life: Life, kill: Kill, ports: tuple[int, int]) -> None:
        async with connected(self._plan.setting.transport, *ports) as send, asyncio.TaskGroup() as tasks:
            for client in self._clients:
                tasks.create_task(self._send_on(client, send, life))
            await self._end_of(life, kill)
            await life.end()

    async def _end_of(self, life: Life, kill: Kill) -> None:
        if kill.manner == "load":
            if kill.operation:
                life.tell(signal.SIGUSR1)
                await asyncio.wait([life.ended], timeout=LONGEST)
            else:
                await asyncio.wait([life.ended], timeout=self._rng.random() * LONGEST)
        else:
            await asyncio.sleep(self._rng.random() * 0.1)
            if kill.operation:
                life.tell(signal.SIGUSR1)
            if kill.manner == "reload" and self._rng.random() < 0.5:
                self._changed = not self._changed
                (self._folder / "config.yaml").write_text(json.dumps(self._config()), encoding="utf-8")
            life.tell(signal.SIGHUP if kill.manner == "reload" else signal.SIGTERM)
            await asyncio.wait([life.ended], timeout=LONGEST if kill.operation else self._rng.random() * 0.15)
        self._recorder.over = True
        life.tell(signal.SIGKILL)

    async def _send_on(self, client: Client, send: Send, life: Life) -> None:
        """Send one request after the other, each until it is known to be taken."""
        pending = self._pending[client]
        while not life.over:
            if not pending:
                request = client.next()
                self._requests.append(request)
                pending.append(request)
            if not await self._send(pending[0], send):
                if life.over:
                    break
                await asyncio.sleep(0.02)
                continue
            pending.pop(0)
        if self._plan.give_up and pending and self._rng.random() < 0.5:
            for trace, _ in pending.pop(0).spans:
                trace.unsure = True

    async def _send(self, request: Request, send: Send) -> bool:
        request.tries += 1
        if await send(request.body) is not Outcome.TAKEN:
            return False
        request.taken_in = self._recorder.life
        return True

    def _judge(self, code: int, kill: Kill, life: Life) -> None:
        if code == 0 and kill.manner == "stop":
            self._ended_by["stop, in order"] += 1
        elif code == -signal.SIGKILL:
            by = kill.operation if "\nkilled: " in "\n" + life.said else "a random time"
            self._ended_by[f"{kill.manner}, {f'{kill.phase} ' if by == kill.operation else ''}{by}"] += 1
        else:
            self._faults.append(f"life {self._recorder.life} ({kill}) ended with {code}: {life.said[-2000:]}")
        if "Traceback" in life.said or "missing" in life.said:
            self._faults.append(f"life {self._recorder.life} ({kill}) says: {life.said[-3000:]}")

    async def _last_life(self) -> None:
        """Nothing is killed any more: all is sent, what is undecided is ended, and all comes that is to come."""
        life = await self._start(Kill("load"))
        if (ports := await life.ports()) is None:
            self._faults.append(f"it did not start at last: {life.said[-2000:]}")
            return
        async with connected(self._plan.setting.transport, *ports) as send, asyncio.TaskGroup() as tasks:
            for client in self._clients:
                tasks.create_task(self._finish(client, send))
        await self._settle()
        life.tell(signal.SIGTERM)
        code = await life.end()
        if self._file:
            self._file.look()
        if code or "Traceback" in life.said or "missing" in life.said:
            self._faults.append(f"the last life ended with {code}: {life.said[-3000:]}")

    async def _finish(self, client: Client, send: Send) -> None:
        closing = client.closing()
        self._requests += closing
        for request in [*self._pending[client], *closing]:
            for _ in range(200):
                if await self._send(request, send):
                    break
                await asyncio.sleep(0.02)
            else:
                self._faults.append("a request was refused to the end")
                return

    async def _settle(self) -> None:
        """Wait until all has come that is to come, as long as something comes."""
        waited = 0.0
        seen = -1
        while waited < 2.0:
            if self._file:
                self._file.look()
            missing = sum(
                1
                for request in self._requests
                if request.taken_in is not None
                for trace, id in request.spans
                if id not in self._recorder.ids and trace.fate(sampled=self._plan.setting.sampled) == "kept"
            )
            if not missing:
                return
            waited = 0.0 if missing != seen else waited + 0.05
            seen = missing
            await asyncio.sleep(0.05)
