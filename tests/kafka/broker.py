"""One Kafka broker, a process of Java's: broker and controller at once, as KRaft has it, on ports of the loopback."""

import base64
import contextlib
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.envtest.control_plane import HOST
from tests.kafka.small_disk import SmallDisk

DEADLINE = 180
"""Seconds for a broker to become ready or to end, on a machine that has other things to do."""
_CLUSTER = base64.urlsafe_b64encode(b"podtrail kafka..").decode().rstrip("=")
# A small heap, and a JVM that is quick to start rather than quick in the end.
_JAVA = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_READY = "Kafka Server started"


class Place(NamedTuple):
    """Where a broker is found: its number, the controller's port and that of each listener by name, and the address."""

    number: int
    controller: int
    listeners: Mapping[str, int]
    host: str = HOST


class Broker:
    """A broker in a folder of its own; it keeps its ports and what it was told across restarts."""

    def __init__(
        self, assets: Path, folder: Path, place: Place, properties: Mapping[str, str], small_disk: str = ""
    ) -> None:
        self.number = place.number
        self.place = place
        self.folder = folder
        self.log = folder / "broker.log"
        self._assets = assets
        self._process: subprocess.Popen[bytes] | None = None
        data = folder / "data"
        data.mkdir(parents=True)
        self._format(data)
        self.small_disk: SmallDisk | None = None
        if small_disk:
            (folder / "small").mkdir()
            self._format(folder / "small")
            self.small_disk = SmallDisk(folder / "small", small_disk)
        own = {
            "process.roles": "broker,controller",
            "node.id": str(place.number),
            "listeners": _addresses(place.host, {**place.listeners, "CONTROLLER": place.controller}),
            "advertised.listeners": _addresses(place.host, place.listeners),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": f"{data},{folder / 'small'}" if small_disk else str(data),
            "metadata.log.dir": str(data),
            **properties,
        }
        text = "".join(f"{key}={value}\n" for key, value in own.items())
        (folder / "server.properties").write_text(text, encoding="utf-8")

    @property
    def alive(self) -> bool:
        """Whether its process is there, stalled or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, f"broker {self.number} was never launched"
        return self._process.pid

    def launch(self) -> None:
        """Starts its process; `wait_until_ready` waits for it."""
        assert not self.alive, f"broker {self.number} is there already"
        self.log.write_bytes(b"")
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []  # when the tests are killed
        entrance = self.small_disk.entrance if self.small_disk is not None else ()
        classes = f"-XX:SharedArchiveFile={self._assets / 'classes.jsa'}"  # parsed classes; build.sh has written them
        command = ["java", *_JAVA, classes, "-cp", f"{self._assets / 'jars'}/*", "kafka.Kafka"]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [*entrance, *leash, *command, str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def wait_until_ready(self) -> None:
        """Returns when it serves clients."""
        assert self._process is not None
        deadline, last = time.monotonic() + DEADLINE, "not ready"
        while time.monotonic() < deadline:
            if (code := self._process.poll()) is not None:
                last = f"ended with {code}"
                break
            if _READY in self.said():
                return
            time.sleep(0.1)
        raise AssertionError(f"broker {self.number}: {last}\n{self.said()[-3000:]}")

    def said(self) -> str:
        """Return its log since its last start."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Starts it, also again after `stop` or `kill`, with the data it had; returns when it serves clients."""
        self.launch()
        self.wait_until_ready()

    def stall(self) -> None:
        """Has it hang: connections stay open and nothing is answered, until `go_on`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Has it go on after `stall`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends it as a crash of its machine would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(DEADLINE)

    def stop(self) -> None:
        """Shuts it down in order: what it leads goes to others first."""
        if not self.alive:
            return
        assert self._process is not None
        self.go_on()
        self._process.terminate()
        try:
            self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()

    def _format(self, data: Path) -> None:
        """Does what `kafka-storage format` does, from what build.sh has kept of it: that takes a JVM of its own."""
        shutil.copy(self._assets / "bootstrap.checkpoint", data / "bootstrap.checkpoint")
        directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        told = {"version": "1", "cluster.id": _CLUSTER, "node.id": str(self.number), "directory.id": directory}
        text = "".join(f"{key}={value}\n" for key, value in told.items())
        (data / "meta.properties").write_text(text, encoding="utf-8")


def stop_all(brokers: Sequence[Broker]) -> None:
    """Ends them all at once: nobody is left to hand anything over to."""
    for broker in brokers:
        if broker.alive:
            with contextlib.suppress(ProcessLookupError):
                broker.kill()
        if broker.small_disk is not None:
            broker.small_disk.close()


def _addresses(host: str, ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{host}:{port}" for name, port in ports.items())
