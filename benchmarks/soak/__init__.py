"""A durable pipeline under load for hours, reloaded, killed, restarted, its backend away: what leaks, what is lost.

`./dev bench soak [--seconds N] [--requests N]`: an hour unless told; 120 seconds is what CI runs. Prints a table, and
ends with 1 when a promise is broken: something acknowledged that is to be kept doesn't come, something else comes,
memory, descriptors, threads or the store grow, the ledger doesn't add up.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from benchmarks.loopback.processes import free_ports
from benchmarks.soak.backend import Backend
from benchmarks.soak.clients import Clients
from benchmarks.soak.lives import Lives
from benchmarks.soak.verdict import Verdict

_EVENTS = 24
_EACH_AT_LEAST = 8.0
"""Seconds between two events."""
_LONGEST_OUTAGE = 60.0
_ORDER = ("reload", "outage", "kill", "reload", "restart", "reload", "kill while the backend is away")
_ONE_LIFE = ("reload", "outage")
"""What happens in the second half: one long life, in which a leak is told from allocators that still settle."""
_SAMPLES = 240
_PATIENCE = 180.0
"""Seconds in which everything has to have come at the end."""


def main(arguments: Sequence[str] = ()) -> int:
    """Run it."""
    reader = argparse.ArgumentParser(prog="./dev bench soak", description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--seconds", type=float, default=3600.0, help="how long clients send (3600)")
    reader.add_argument("--requests", type=float, default=20.0, help="a second, of 40 spans each (20)")
    options = reader.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="podtrail-soak-") as folder:
        return _soak(Path(folder), options.seconds, options.requests)


def _soak(folder: Path, seconds: float, requests: float) -> int:
    ports = free_ports()
    backend = Backend(ports.sink)
    clients = Clients(ports.otlp, requests)
    lives = Lives(folder, ports)
    try:
        lives.begin()
        clients.start()
        for event in _events(seconds, lives):
            _told(event)
            _happen(event, backend, lives, min(_LONGEST_OUTAGE, _period(seconds) / 2))
        clients.stop()
        _told("clients have stopped")
        until = time.monotonic() + _PATIENCE
        while backend.missing(clients.acknowledged) and time.monotonic() < until:
            lives.sample()
            time.sleep(0.5)
        lives.restart()  # what is undecided or owed now has to survive once more
        time.sleep(1)
        lives.sample()
        lives.end()
    finally:
        clients.stop(abandon=True)
        lives.kill()
        backend.close()
    verdict = Verdict(clients, backend, lives)
    print(verdict.table())
    return 1 if verdict.broken else 0


def _period(seconds: float) -> float:
    return max(_EACH_AT_LEAST, seconds / _EVENTS)


def _events(seconds: float, lives: Lives) -> Iterator[str]:
    """Yield what happens, when it is to happen; take samples in between."""
    began = time.monotonic()
    due = _period(seconds)
    first_half, second_half = cycle(_ORDER), cycle(_ONE_LIFE)
    while (now := time.monotonic() - began) < seconds:
        if now >= due:
            due += _period(seconds)
            yield next(first_half if now < seconds / 2 else second_half)
        lives.sample()
        time.sleep(max(0.25, seconds / _SAMPLES / 2))


def _happen(event: str, backend: Backend, lives: Lives, outage: float) -> None:
    if event == "reload":
        lives.reload()
    elif event == "restart":
        lives.restart()
    elif event == "kill":
        lives.kill()
        lives.begin()
    else:
        backend.away = True
        time.sleep(outage / 2)
        if event != "outage":
            lives.kill()
            lives.begin()
        time.sleep(outage / 2)
        backend.away = False


def _told(event: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {event}", file=sys.stderr, flush=True)
