"""Exporters that are slow or fail in every way there is: none delays what another gets, in the run or at its end."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.reliability.conftest import (
    Backend,
    Config,
    Process,
    Sender,
    configuration,
    ids,
    otlp_exporter,
    request,
)
from tests.service.toolbox import until

KEEP_ALL = {"tail_sampling": {"decision_wait": "50ms", "policies": [{"name": "all", "type": "always_sample"}]}}
SMALL = {"sizer": "items", "queue_size": 30, "num_consumers": 1}


def slow(backend: Backend) -> Config:
    backend.open.set()
    backend.seconds = 1.0
    return otlp_exporter(backend.port, sending_queue=SMALL)


def slow_and_blocking(backend: Backend) -> Config:
    return slow(backend) | {"sending_queue": SMALL | {"block_on_overflow": True}}


def silent(backend: Backend) -> Config:
    return otlp_exporter(backend.port, timeout="200ms", sending_queue=SMALL)


def silent_and_blocking(backend: Backend) -> Config:
    return otlp_exporter(backend.port, sending_queue=SMALL | {"block_on_overflow": True})


def refusing_for_good(backend: Backend) -> Config:
    backend.open.set()
    backend.status = grpc.StatusCode.INVALID_ARGUMENT
    return otlp_exporter(backend.port, sending_queue=SMALL)


def tried_again_for_ever(backend: Backend) -> Config:
    backend.open.set()
    backend.status = grpc.StatusCode.UNAVAILABLE
    retry = {"initial_interval": "10ms", "max_interval": "20ms", "max_elapsed_time": "0s"}
    return otlp_exporter(backend.port, retry_on_failure=retry, sending_queue=SMALL)


def end_at_once(process: Process) -> None:
    """End a process that is not to wait for backends: how long that may take is tests/service/test_stopping.py's."""
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    process.tell(signal.SIGTERM)
    process.end()


WAYS = [slow, silent, silent_and_blocking, refusing_for_good, tried_again_for_ever]


@pytest.mark.parametrize(("way", "processors"), [*zip(WAYS, [KEEP_ALL, {}, KEEP_ALL, {}, KEEP_ALL], strict=True)])
def test_a_healthy_exporter_gets_everything_whatever_another_does(
    start: Any, sender: Any, stalled: Any, healthy: Any, processors: Config, way: Any
) -> None:
    exporters = {"otlp_grpc/other": way(stalled), "otlp_grpc/healthy": otlp_exporter(healthy.port)}
    process = start(configuration(exporters, processors))
    here: Sender = sender(process)
    for _ in range(100):
        assert here.send(here.next()).taken
    until(lambda: healthy.came == here.acknowledged)
    end_at_once(process)
    assert process.line("stopped: otlp_grpc/healthy: 300 received = 300 delivered")
    assert stalled.came.total() <= 300
    assert process.line("stopped: otlp_grpc/other: 300 received = ")
    assert "missing" not in process.log


def test_a_slow_exporter_whose_user_chose_blocking_sets_the_pace_and_loses_nothing(
    start: Any, sender: Any, stalled: Any, healthy: Any
) -> None:
    exporters = {"otlp_grpc/other": slow_and_blocking(stalled), "otlp_grpc/healthy": otlp_exporter(healthy.port)}
    stalled.seconds = 0.05
    process = start(configuration(exporters))
    here: Sender = sender(process)
    for _ in range(60):
        assert here.send(here.next()).taken
    process.tell(signal.SIGTERM)
    process.end()
    for exporter in exporters:
        assert process.line(f"stopped: {exporter}: 180 received = 180 delivered")
    assert stalled.came == healthy.came == here.acknowledged


def test_a_job_over_recordings_waits_for_a_slow_exporter_and_loses_nothing(
    start: Any, stalled: Any, healthy: Any, tmp_path: Path
) -> None:
    requests = [request(number) for number in range(1, 101)]
    messages = [one.SerializeToString() for one in requests]
    recording = tmp_path / "requests.binpb"
    recording.write_bytes(b"".join(len(message).to_bytes(4, "big") + message for message in messages))
    stalled.open.set()
    stalled.seconds = 0.05
    exporters = {"otlp_grpc/slow": otlp_exporter(stalled.port, sending_queue=SMALL)}
    exporters["otlp_grpc/healthy"] = otlp_exporter(healthy.port)
    config = configuration(exporters, KEEP_ALL)
    config["receivers"] = {"otlp_json_file": {"include": [str(recording)]}}
    config["service"]["pipelines"]["traces"]["receivers"] = ["otlp_json_file"]
    process = start(config, "--exit-when-done")
    assert process.end() == 0
    for exporter in exporters:
        assert process.line(f"stopped: {exporter}: 300 received = 300 delivered")
    assert stalled.came == healthy.came == sum(map(ids, requests), start=Counter())


def test_what_is_to_be_on_disk_is_never_dropped_beside_another_but_refused(
    start: Any, sender: Any, stalled: Any, healthy: Any
) -> None:
    kept = SMALL | {"storage": "file_storage"}
    exporters = {"otlp_grpc/other": otlp_exporter(stalled.port, timeout="200ms", sending_queue=kept)}
    exporters["otlp_grpc/healthy"] = otlp_exporter(healthy.port)
    config = configuration(exporters, KEEP_ALL)
    config["extensions"] = {"file_storage": {"directory": "store", "create_directory": True}}
    config["service"]["extensions"] = ["file_storage"]
    process = start(config)
    here: Sender = sender(process)
    waiting: list[Any] = []
    while len(waiting) < 2:
        sent = here.next()
        answer = here.send(sent)
        if not answer.taken:
            assert answer.code is grpc.StatusCode.UNAVAILABLE
            assert "the sending queue of otlp_grpc/other is full" in answer.details
            waiting.append(sent)
    stalled.open.set()
    here.send_again_until_taken(waiting)
    # What is answered later than after 200 ms is sent once more.
    until(lambda: healthy.came == here.acknowledged and stalled.came.keys() == here.acknowledged.keys())
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert "dropped" not in process.log
