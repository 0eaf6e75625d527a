"""A pipeline with storage and a backend, for tests of one thing: lives on one folder, one after the other."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.reliability.crash.lives import PATIENCE, Life, Zygote, zygote
from tests.reliability.crash.load import Client, Request
from tests.reliability.crash.recorder import FileRecorder, Recorder, grpc_backend, http_backend
from tests.reliability.crash.sending import Outcome, connected
from tests.reliability.crash.settings import Setting

NO_DEATH = {"operation": "", "nth": 0, "phase": "", "stage": "start"}


class Stage:
    """What a test of one thing needs."""

    def __init__(self, setting: Setting, folder: Path, started: Zygote, recorder: Recorder) -> None:
        self.setting = setting
        self.folder = folder
        self.store = folder / "storage"
        self.recorder = recorder
        self.client = Client(setting.load, seed=1, spans=3)
        self.changes: dict[str, Any] = {}
        """What to put into the configuration: sections by name."""
        self._zygote = started
        self._file = FileRecorder(recorder, folder / "kept.jsonl") if setting.exporter == "file" else None

    async def start(self, death: Mapping[str, Any] | None = None) -> Life:
        """Start a life; it is ready, or has ended."""
        self.recorder.life += 1
        config = self._configuration()
        aside = self.folder / "aside"
        aside.mkdir(exist_ok=True)
        life = await self._zygote.start(self.folder, config, {**(death or NO_DEATH), "aside": str(aside)})
        await life.ports()
        return life

    def configure(self) -> None:
        """Write the configuration with its changes, for the life that is told to read it again."""
        (self.folder / "config.yaml").write_text(json.dumps(self._configuration()), encoding="utf-8")

    def _configuration(self) -> dict[str, Any]:
        config = self.setting.configuration(self.folder, self.recorder.port)
        for section, settings in self.changes.items():
            config[section] = {**config[section], **settings}
        return config

    async def send(self, life: Life, requests: Iterable[Request]) -> list[Outcome]:
        """Send requests, one after the other, once each."""
        ports = await life.ports()
        assert ports, life.said
        outcomes = []
        async with connected(self.setting.transport, *ports) as send:
            for request in requests:
                request.tries += 1
                outcomes.append(await send(request.body))
                if outcomes[-1] is Outcome.TAKEN:
                    request.taken_in = self.recorder.life
        return outcomes

    async def send_until_taken(self, life: Life, requests: Sequence[Request]) -> None:
        """Send requests, each until it is taken."""
        async with asyncio.timeout(PATIENCE):
            for request in requests:
                for _ in itertools.count():
                    if await self.send(life, [request]) == [Outcome.TAKEN]:
                        break
                    await asyncio.sleep(0.05)

    def requests(self, count: int) -> list[Request]:
        """Return requests that were never sent."""
        return [self.client.next() for _ in range(count)]

    def kept(self, requests: Iterable[Request]) -> set[bytes]:
        """Return the spans of acknowledged requests that are to come."""
        return {
            id
            for request in requests
            if request.taken_in is not None
            for trace, id in request.spans
            if trace.fate(sampled=self.setting.sampled) == "kept"
        }

    async def comes(self, spans: set[bytes]) -> None:
        """Wait until these have come."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not spans <= self._came():
            assert asyncio.get_running_loop().time() < deadline, f"{len(spans - self._came())} spans never came"
            await asyncio.sleep(0.02)

    def _came(self) -> set[bytes]:
        if self._file:
            self._file.look()
        return self.recorder.ids

    def times(self) -> Counter[bytes]:
        """Return how often each span has come."""
        self._came()
        return Counter(id for request in self.recorder.came for id in request.spans)


@asynccontextmanager
async def stage(setting: Setting, folder: Path) -> AsyncIterator[Stage]:
    """Set a stage."""
    recorder = Recorder()
    backend = http_backend if setting.exporter == "otlp_http" else grpc_backend
    async with backend(recorder), zygote() as started:
        yield Stage(setting, folder, started, recorder)
