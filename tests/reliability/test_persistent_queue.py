"""A sending queue on disk: real processes that are killed and stopped, backends that are down, disks that fill up."""

import random
import resource
import signal
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.reliability.conftest import Backend, Config, Process, Start, configuration, otlp_exporter

SEED = 7


def persistent(backend: Backend, folder: Path, *, consumers: int = 1, metrics_port: int = 0, **queue: Any) -> Config:
    """A configuration that passes everything on to a backend, through a queue on disk."""
    settings = {"num_consumers": consumers, "storage": "file_storage", "sizer": "items", "queue_size": 10_000_000}
    exporter = otlp_exporter(backend.port, sending_queue={**settings, **queue})
    config = configuration({"otlp_grpc/backup": exporter}, metrics_port=metrics_port)
    config["extensions"] = {"file_storage": {"directory": str(folder), "create_directory": True}}
    config["service"]["extensions"] = ["file_storage"]
    return config


def down(backend: Backend) -> None:
    """Have a backend refuse everything."""
    backend.status = grpc.StatusCode.UNAVAILABLE
    backend.open.set()


def up(backend: Backend) -> None:
    """Have a backend take everything."""
    backend.status = grpc.StatusCode.OK


def restarted(start: Start, config: Config) -> Process:
    return start(config).ready()


def numbered(count: int, spans: int) -> list[bytes]:
    """The ids of the spans that a sender has sent with so many requests."""
    return [(number * 10_000 + at + 1).to_bytes(8, "big") for number in range(1, count + 1) for at in range(spans)]


def test_what_was_queued_when_the_process_was_killed_comes_in_order_and_once(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config)
    sending = sender(process)
    for _ in range(50):
        assert sending.send(sending.next(200)).taken
    process.tell(signal.SIGKILL)
    process.end()
    assert not stalled.came

    up(stalled)
    again = restarted(start, config)
    until(lambda: len(stalled.sequence) >= 10_000)
    again.tell(signal.SIGTERM)
    assert again.end() == 0
    assert stalled.sequence == numbered(50, 200)
    again.line("sends 10000 spans that were in its queue when podtrail ended")
    again.line("stopped: otlp_grpc/backup: 10000 received = 10000 delivered")


def test_who_is_told_to_stop_leaves_the_rest_on_disk_and_waits_for_no_backend(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config)
    sending = sender(process)
    for _ in range(20):
        assert sending.send(sending.next(500)).taken
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert "waiting at most" not in process.log
    process.line("10000 spans stay in its queue on disk, and are sent when it starts with this sending_queue::storage")
    process.line("10000 received = 10000 in queue")
    assert "dropped" not in process.log

    up(stalled)
    again = restarted(start, config)
    until(lambda: len(stalled.sequence) >= 10_000)
    again.tell(signal.SIGTERM)
    assert again.end() == 0
    assert stalled.sequence == numbered(20, 500)


def test_kills_while_what_was_queued_is_taken_up_lose_nothing(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    """Requests under way when it is killed may come twice: at most one a consumer and kill."""
    kills, consumers = 4, 4
    down(stalled)
    stalled.seconds = 0.01
    config = persistent(stalled, tmp_path / "store", consumers=consumers)
    process = start(config)
    sending = sender(process)
    for _ in range(100):
        assert sending.send(sending.next(2)).taken
    process.tell(signal.SIGKILL)
    process.end()
    chance = random.Random(SEED)
    for _ in range(kills):
        process = start(config)
        if chance.random() < 0.5:
            process.line("spans that were in its queue|ready: ")
        else:
            time.sleep(chance.random() * 0.6)  # in the middle of the start
        process.tell(signal.SIGKILL)
        process.end()
    up(stalled)
    for _ in range(2):  # and while they are sent
        process = start(config)
        process.line("spans that were in its queue|ready: ")
        process.tell(signal.SIGKILL)
        process.end()
    last = restarted(start, config)
    until(lambda: len(stalled.came) >= 200)
    last.tell(signal.SIGTERM)
    assert last.end() == 0
    assert stalled.came.keys() == sending.acknowledged.keys()
    assert max(stalled.came.values()) <= 3


def test_a_queue_larger_than_memory_waits_on_disk(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path, free_port: Any, get: Any
) -> None:
    """While 150 MiB wait for a backend that is down, memory grows by a fraction of that."""
    port = free_port()
    down(stalled)
    config = persistent(stalled, tmp_path / "store", metrics_port=port, sizer="bytes", queue_size=1 << 40)
    process = start(config)
    sending = sender(process)
    assert sending.send(sending.next(1, 1 << 20)).taken

    def resident() -> int:
        status = Path(f"/proc/{process.popen.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) >> 10

    before = resident()
    for _ in range(149):
        assert sending.send(sending.next(1, 1 << 20)).taken
    _, page = get(f"http://127.0.0.1:{port}/metrics")
    (size,) = [line.split()[-1] for line in page.splitlines() if line.startswith("otelcol_exporter_queue_size")]
    assert float(size) > 150 << 20
    assert resident() - before < 75
    up(stalled)
    until(lambda: len(stalled.sequence) >= 150)
    assert stalled.sequence == numbered(150, 1)
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def test_a_full_disk_refuses_senders_and_goes_on_by_itself(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config)
    sending = sender(process)
    assert sending.send(sending.next(10)).taken
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    refused = []
    answer = None
    for _ in range(30):
        sent = sending.next(1, 20_000)
        answer = sending.send(sent)
        if not answer.taken:
            refused.append(sent)
    assert refused
    assert answer is not None
    assert answer.code is grpc.StatusCode.UNAVAILABLE
    assert answer.retry_info
    assert "can't write" in answer.details
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, unlimited)
    sending.send_again_until_taken(refused)
    process.tell(signal.SIGKILL)
    process.end()

    up(stalled)
    again = restarted(start, config)
    until(lambda: stalled.came.keys() >= sending.acknowledged.keys())
    again.tell(signal.SIGTERM)
    assert again.end() == 0
    # What was being written when the disk filled up is refused, and kept all the same.
    assert sum(stalled.came.values()) - len(stalled.came) <= 1


def test_a_damaged_segment_costs_what_is_damaged_and_never_the_start(
    start: Start, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config)
    sending = sender(process)
    for _ in range(20):
        assert sending.send(sending.next(10)).taken
    process.tell(signal.SIGKILL)
    process.end()
    (segment,) = (tmp_path / "store").glob("*/*.otlp")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)

    up(stalled)
    again = restarted(start, config)
    until(lambda: len(stalled.sequence) >= 190)
    again.tell(signal.SIGTERM)
    assert again.end() == 0
    assert len(stalled.sequence) == 190
    assert stalled.sequence == [number for number in numbered(20, 10) if number in stalled.came]
    again.line("damaged")


def test_a_reload_moves_nothing_twice_and_opens_no_queue_twice(
    start: Start, configure: Any, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config).ready()
    sending = sender(process)
    for _ in range(20):
        assert sending.send(sending.next(10)).taken
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: reloaded")
    said = len(process.lines)
    other = persistent(stalled, tmp_path / "store", queue_size=20_000_000)
    configure(other)
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: reloaded", after=said)
    process.line("sends 200 spans that were in its queue", after=said)
    assert sending.send(sending.next(10)).taken
    up(stalled)
    until(lambda: len(stalled.sequence) >= 210)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert stalled.sequence == numbered(21, 10)
    process.line('stopped: otlp_grpc/backup: 210 received = 210 delivered"')


def test_a_reload_that_the_disk_lets_neither_succeed_nor_be_undone_goes_on_when_the_disk_does(
    start: Start, configure: Any, sender: Any, stalled: Backend, until: Any, tmp_path: Path
) -> None:
    down(stalled)
    store, away = tmp_path / "store", tmp_path / "away"
    config = persistent(stalled, store)
    process = start(config).ready()
    sending = sender(process)
    for _ in range(20):
        assert sending.send(sending.next(10)).taken
    store.rename(away)
    store.touch()
    config["exporters"]["otlp_grpc/backup"]["sending_queue"]["queue_size"] = 123_456_789
    configure(config)
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: the new configuration can't start, going back: .*store")
    process.line("SIGHUP: the old configuration can't start either, senders wait meanwhile: .*store")
    sent = sending.next(10)
    answer = sending.send(sent)
    assert (answer.code, answer.details) == (grpc.StatusCode.UNAVAILABLE, "the pipelines are being swapped")
    store.unlink()
    away.rename(store)
    process.line("SIGHUP: the old configuration runs on")
    assert sending.send(sent).taken
    up(stalled)
    until(lambda: len(stalled.sequence) >= 210)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert stalled.sequence == numbered(21, 10)
    process.line("stopped: otlp_grpc/backup: 210 received = 210 delivered")


@pytest.mark.parametrize("gone", ["exporter", "storage"])
def test_a_queue_that_nobody_has_any_more_stays_and_is_named(
    start: Start, sender: Any, stalled: Backend, tmp_path: Path, gone: str
) -> None:
    down(stalled)
    config = persistent(stalled, tmp_path / "store")
    process = start(config)
    sending = sender(process)
    assert sending.send(sending.next(10)).taken
    process.tell(signal.SIGKILL)
    process.end()
    if gone == "exporter":
        config["exporters"]["otlp_grpc/other"] = config["exporters"].pop("otlp_grpc/backup")
        config["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc/other"]
    else:
        del config["exporters"]["otlp_grpc/backup"]["sending_queue"]["storage"]
    again = restarted(start, config)
    again.line("exporter_otlp_grpc_backup holds [0-9]+ bytes that nothing uses")
    again.tell(signal.SIGTERM)
    assert again.end() == 0
    assert list((tmp_path / "store" / "exporter_otlp_grpc_backup").glob("*.otlp"))
