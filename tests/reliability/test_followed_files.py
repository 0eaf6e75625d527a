"""Files that `otlp_json_file` follows into a durable pipeline: killed at any time, every span comes once."""

import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.conftest import configuration, otlp_exporter
from tests.service.toolbox import until
from tests.sizes import large

KILLS = 4
REQUESTS = 400
ROTATED = 150
"""After so many requests the file is renamed and begun anew."""


def line(number: int) -> bytes:
    span = b'{"traceId":"%032x","spanId":"%016x","name":"%b"}' % (number, number, b"x" * (number % 400))
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + span + b"]}]}]}\n"


@pytest.mark.parametrize("seed", range(1, large(1, 10) + 1))
def test_every_span_comes_once_whenever_podtrail_is_killed(start: Any, stalled: Any, tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    settings = configuration({"otlp_grpc": otlp_exporter(stalled.port)}, {"batch": {"timeout": "20ms"}})
    settings["extensions"] = {"file_storage": {"directory": str(tmp_path / "store"), "create_directory": True}}
    settings["receivers"] = {
        "otlp_json_file": {
            "include": [f"{folder}/*.jsonl*"],
            "follow": True,
            "poll_interval": "2ms",
            "storage": "file_storage",
        }
    }
    settings["service"]["extensions"] = ["file_storage"]
    settings["service"]["pipelines"]["traces"] |= {"receivers": ["otlp_json_file"], "durable": "file_storage"}
    rng = random.Random(seed)
    written = 0

    def write(until: int) -> None:
        nonlocal written
        while written < until:
            written += 1
            with (folder / "r.jsonl").open("ab") as file:
                file.write(line(written))
            if written % ROTATED == 0:
                (folder / "r.jsonl").rename(folder / f"r.jsonl.{written}")

    wait = threading.Event().wait
    for kill in range(KILLS):
        process = start(settings).ready()
        write((kill + 1) * REQUESTS // (KILLS + 1))
        wait(rng.uniform(0.0, 0.15))  # the moment of the kill is what the seed chooses, nothing depends on it
        process.tell(signal.SIGKILL)
        process.end()
        write(written + rng.randrange(5))
    process = start(settings).ready()
    stalled.open.set()  # not before: what is being delivered at a kill may be delivered again
    write(REQUESTS)
    until(lambda: len(stalled.came) == REQUESTS)
    process.tell(signal.SIGTERM)
    process.end()
    assert max(stalled.came.values()) == 1
