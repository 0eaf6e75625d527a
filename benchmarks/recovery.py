"""How long podtrail takes to be ready again with a million undecided spans after SIGKILL, beside what taking them took.

`durable` pipeline with a tail sampler that waits. Killed once the last request is acknowledged, it is started on its
store as it was left (its last state and the log since), and on a copy without any state (the log alone). That all
spans are there is asked of its ledger before the time counts. The claim: a million spans in 10 s.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import Load, make_load
from benchmarks.loopback.processes import Ports, beside, free_ports, wait_for
from benchmarks.loopback.sender import send_all
from benchmarks.loopback.stores import Stored
from benchmarks.loopback.wire import write_requests
from benchmarks.pipeline import written_by

TRACES = int(os.environ.get("BENCH_TRACES", "30000"))
LIMIT = 10.0
"""Seconds a million spans."""
_PATIENCE = 10.0
_WAITING = Stored("podtrail", samples=True, keeps="pipeline", wait=3600)


class Start(NamedTuple):
    """A start on a store."""

    seconds: float
    """Until it said that it is ready."""
    held: int
    """Spans that it has then."""


def taken(load: Load, requests: Path, home: Path) -> tuple[float, int]:
    """Have all of a load taken, and kill; return the seconds it took, and the bytes that were written."""
    ports = free_ports()
    with ExitStack() as stack:
        log = stack.enter_context((home / "taken.log").open("wb"))
        process = subprocess.Popen(_WAITING.command(ports, home), stdout=log, stderr=log)
        stack.callback(process.wait, _PATIENCE)
        stack.callback(process.kill)
        wait_for(ports.otlp, process)
        sender = beside(stack, send_all, requests, ports.otlp)
        sender.send("go")
        took: float | str = sender.recv()
        if isinstance(took, str):
            raise SystemExit(took)
        assert _held(ports) == load.spans
        written = written_by(process.pid)
        process.send_signal(signal.SIGKILL)
        return took, written


def started(home: Path) -> Start:
    """Start on the store in `home`, and kill again."""
    ports = free_ports()
    command = _WAITING.command(ports, home)
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if "ready: " in line:
                break
        took = time.perf_counter() - began
        held = _held(ports) if process.poll() is None else 0
        process.kill()
        process.stderr.read()
    print("".join(f"    {line}" for line in said if "recover" in line or "file_storage" in line), end="")
    return Start(took, held)


def _held(ports: Ports) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{ports.spare}/metrics", timeout=_PATIENCE) as answer:
        text = answer.read().decode()
    found = re.search(r'^podtrail_ledger_spans\{[^}]*term="in_memory"[^}]*\} (\S+)', text, re.MULTILINE)
    return int(float(found[1])) if found else 0


def _say(what: str, start: Start, spans: int, took: float, empty: float) -> None:
    if start.held != spans:
        raise SystemExit(f"{what}: {start.held} of {spans} spans are there")
    million = start.seconds / spans * 1e6
    verdict = "holds" if million <= LIMIT else "MISSED"
    print(
        f"{what}: ready after {start.seconds:.2f} s, {million:.2f} s a million spans, {verdict} (limit {LIMIT:.0f} s); "
        f"{(start.seconds - empty) / took:.2f} of the time that taking them took"
    )


def main() -> None:
    """Print how long it takes from what was left, and from the log alone."""
    load = make_load(TRACES)
    received = sum(map(len, load.requests))
    with tempfile.TemporaryDirectory() as folder:
        home, copy = Path(folder) / "left", Path(folder) / "log"
        home.mkdir()
        requests = Path(folder) / "requests"
        write_requests(requests, load.requests)
        empty = Path(folder) / "empty"
        empty.mkdir()
        nothing = started(empty).seconds
        took, written = taken(load, requests, home)
        print(
            f"{load.spans} spans taken in {took:.2f} s, {written / received:.2f} bytes written a byte received while "
            f"all are held; a start on an empty store takes {nothing:.2f} s",
            flush=True,
        )
        shutil.copytree(home, copy)
        states = list(copy.rglob("*.state"))
        for state in states:
            state.unlink()
        _say(f"its store as it was left ({len(states)} states)", started(home), load.spans, took, nothing)
        _say("the log alone", started(copy), load.spans, took, nothing)


if __name__ == "__main__":
    main()
