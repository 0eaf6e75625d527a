"""What happens in one simulated story: a configuration, and events at times, each a line that people read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.reliability.simulation.traffic import Piece

Manner = Literal["well", "slow", "failing", "taking without an answer", "rejecting", "hanging"]
DiskManner = Literal["well", "full", "write fails", "fsync fails", "everything fails"]

BACKENDS = {"otlp_grpc/backend": "the backend", "otlp_grpc/archive": "the archive"}
"""The exporters of all configurations, and what is behind them."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How podtrail is configured."""

    chain: str
    """A name of `configurations.CHAINS`."""
    variant: int = 0
    """Which of the chain's settings; a reload goes from one to another."""
    durable: bool = False
    fsync: bool = True
    stored_queues: bool = False
    checkpoint_every: int = 16 << 20
    """Bytes of the log."""
    consumers: int = 1
    queue_size: int = 50
    gives_up: bool = False
    """Whether deliveries are given up in the end."""

    def __str__(self) -> str:
        said = [f"chain {self.chain!r}", f"variant {self.variant}"]
        said += ["durable", f"checkpoint every {self.checkpoint_every} bytes"] if self.durable else []
        said += ["stored queues"] if self.stored_queues else []
        said += [f"fsync {'on' if self.fsync else 'off'}"] if self.durable or self.stored_queues else []
        said += [f"{self.consumers} consumers", f"queues of {self.queue_size}"]
        said += ["gives up after 60 s"] if self.gives_up else []
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Send:
    """A client sends a request, and sends it again until it is acknowledged."""

    at: float
    request: int
    pieces: tuple[Piece, ...]
    tries: int = 1000
    patience: float = 10.0
    """Seconds that it waits for an answer."""

    def __str__(self) -> str:
        often = "" if self.tries >= 1000 else f", {self.tries} tries"
        return f"request {self.request} is sent ({'; '.join(map(str, self.pieces))}{often})"


@dataclass(frozen=True, slots=True)
class BackendTurns:
    """A backend is so from now on."""

    at: float
    exporter: str
    manner: Manner

    def __str__(self) -> str:
        return f"{BACKENDS[self.exporter]} turns: {self.manner}"


@dataclass(frozen=True, slots=True)
class DiskTurns:
    """The disk is so from now on."""

    at: float
    manner: DiskManner

    def __str__(self) -> str:
        return f"the disk turns: {self.manner}"


@dataclass(frozen=True, slots=True)
class Crash:
    """The process is killed, or the machine loses its power; it comes back."""

    at: float
    power: bool = False
    down: float = 1.0
    """Seconds until it starts again."""
    wall_step: float = 0.0
    """By how many seconds the clock on the wall is put forward meanwhile."""
    after_operations: int = 0
    """At the so many'th operation on the disk from then on; 0: at once."""

    def __str__(self) -> str:
        what = "power is lost" if self.power else "podtrail is killed"
        when = f" at operation {self.after_operations} on the disk from here" if self.after_operations else ""
        step = f", its clock put {self.wall_step:+g} s" if self.wall_step else ""
        return f"{what}{when}; it starts again {self.down:g} s later{step}"


@dataclass(frozen=True, slots=True)
class Stop:
    """SIGTERM; it is started again."""

    at: float
    down: float = 1.0

    def __str__(self) -> str:
        return f"podtrail is told to stop; it starts again {self.down:g} s after it has"


@dataclass(frozen=True, slots=True)
class Reload:
    """SIGHUP, with the same or another configuration."""

    at: float
    setup: Setup

    def __str__(self) -> str:
        return f"podtrail is told to reload: {self.setup}"


Event = Send | BackendTurns | DiskTurns | Crash | Stop | Reload


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story before it happens. After the last event all is well, until everything has settled."""

    seed: int
    setup: Setup
    events: Sequence[Event]

    def lines(self) -> Sequence[str]:
        """Return it as lines that people read."""
        return [f"configuration: {self.setup}", *(f"{event.at:9.3f} s  {event}" for event in self.events)]
