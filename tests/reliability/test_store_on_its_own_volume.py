"""A store that fills a volume of its own: refused while it is full, and going on when its content is delivered."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.reliability.conftest import Answer, Backend, Config, Sender, configuration, otlp_exporter
from tests.service.toolbox import until

MIB = 1 << 20
SAMPLER = {"tail_sampling": {"decision_wait": "100ms", "policies": [{"name": "all", "type": "always_sample"}]}}


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("needs root, to mount a tmpfs")
    place = tmp_path / "volume"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize(
    ("queue", "processors"), [({}, SAMPLER), ({"storage": "file_storage"}, {})], ids=["durable", "both"]
)
def test_a_store_that_filled_its_volume_goes_on_when_all_is_delivered_and_delivers_nothing_twice(
    queue: Config, processors: Config, start: Any, sender: Any, stalled: Backend, volume: Path
) -> None:
    config = configuration({"otlp_grpc": otlp_exporter(stalled.port, sending_queue=queue)}, processors)
    config["extensions"] = {"file_storage": {"directory": str(volume / "store"), "create_directory": True}}
    config["service"]["extensions"] = ["file_storage"]
    config["service"]["pipelines"]["traces"]["durable"] = "file_storage"
    process = start(config)
    here: Sender = sender(process)
    answers: list[Answer] = []
    for padding in (MIB // 16, MIB // 256, 0):  # to the last page
        request = here.next(spans=8, padding=padding)
        while (answer := here.send(request)).taken:
            request = here.next(spans=8, padding=padding)
        answers.append(answer)
    assert answers[-1].code is grpc.StatusCode.UNAVAILABLE
    stalled.open.set()
    until(lambda: stalled.came == here.acknowledged)
    here.send_again_until_taken([request])
    until(lambda: stalled.came == here.acknowledged)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    process = start(config).ready()
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert stalled.came == here.acknowledged
