"""What a sending queue on disk does not cover, as in the Collector: what processors hold."""

import signal
from pathlib import Path
from typing import Any

from tests.reliability.conftest import Config, Sender, configuration, otlp_exporter

UNDECIDED = {"tail_sampling": {"decision_wait": "1h", "policies": [{"name": "all", "type": "always_sample"}]}}


def stored(port: int, folder: Path, processors: Config) -> Config:
    exporter = otlp_exporter(port, sending_queue={"storage": "file_storage"})
    config = configuration({"otlp_grpc": exporter}, processors)
    config["extensions"] = {"file_storage": {"directory": str(folder / "storage"), "create_directory": True}}
    config["service"]["extensions"] = ["file_storage"]
    return config


def test_undecided_traces_die_with_the_process_and_what_is_queued_does_not(
    start: Any, sender: Any, stalled: Any, tmp_path: Path
) -> None:
    first = start(stored(stalled.port, tmp_path, {}))
    queued: Sender = sender(first)
    assert queued.send(queued.next()).taken
    first.tell(signal.SIGKILL)
    first.end()
    second = start(stored(stalled.port, tmp_path, UNDECIDED))
    undecided: Sender = sender(second)
    undecided.next()
    assert undecided.send(undecided.next()).taken
    second.tell(signal.SIGKILL)
    second.end()
    stalled.open.set()
    third = start(stored(stalled.port, tmp_path, UNDECIDED)).ready()
    third.tell(signal.SIGTERM)
    assert third.end() == 0
    assert stalled.came.keys() == queued.acknowledged.keys()  # what was under way at a kill may have come as well
