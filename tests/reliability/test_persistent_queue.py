"""A sending queue on disk in real processes; what becomes of it in detail is in tests/pipeline/sending."""

import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.reliability.conftest import Backend, Config, Process, Start, configuration, otlp_exporter
from tests.service.toolbox import until


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
    start: Start, sender: Any, stalled: Backend, tmp_path: Path
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


def test_a_reload_moves_nothing_twice_and_opens_no_queue_twice(
    start: Start, configure: Any, sender: Any, stalled: Backend, tmp_path: Path
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
    start: Start, configure: Any, sender: Any, stalled: Backend, tmp_path: Path
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
