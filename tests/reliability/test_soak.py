"""The soak (`./dev bench soak`) sees spans that don't come, come twice or are unwanted, and what grows."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from benchmarks.loopback.processes import free_ports
from benchmarks.loopback.wire import METHOD, SERVICE
from benchmarks.soak.backend import Backend
from benchmarks.soak.clients import Clients
from benchmarks.soak.lives import Life, Lives, Sample
from benchmarks.soak.verdict import Verdict
from podtrail.otlp import Group, encode_span, frame, write_request

KEPT, DROPPED = 8, 9
MIB = 1 << 20


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Clients, Backend, Lives]]:
    ports = free_ports()
    backend, lives = Backend(ports.sink), Lives(tmp_path, ports)
    (tmp_path / "podtrail.log").touch()
    ended = subprocess.Popen(["true"])
    ended.wait()
    lives.all.append(Life(ended, 0.0, samples=[Sample(at, 100 * MIB, 20, 10, MIB) for at in range(20)]))
    clients = Clients(ports.otlp, 1)
    clients.acknowledged[KEPT] = clients.acknowledged[DROPPED] = 0b11
    yield clients, backend, lives
    backend.close()


def deliver(backend: Backend, lives: Lives, trace: int, *spans: int) -> None:
    id = bytes(8) + trace.to_bytes(8, "big")
    ids = [b"1234567" + bytes([span]) for span in spans]
    raw = frame([encode_span(trace_id=id, span_id=span, name="s", start=1, end=2) for span in ids])
    with grpc.insecure_channel(f"127.0.0.1:{lives._ports.sink}") as channel:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{METHOD}")
        export(write_request([Group(b"", b"", id, raw, len(spans))]), timeout=120)


def failed(stage: tuple[Clients, Backend, Lives]) -> list[str]:
    lines = Verdict(*stage).table().splitlines()
    return [line.removeprefix("FAIL ")[:36].strip() for line in lines if line.startswith("FAIL")]


def test_all_that_is_to_be_kept_came_once(stage: tuple[Clients, Backend, Lives]) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    assert failed(stage) == []
    assert not Verdict(*stage).broken


def test_a_span_that_did_not_come_is_lost(stage: tuple[Clients, Backend, Lives]) -> None:
    deliver(stage[1], stage[2], KEPT, 0)
    assert failed(stage) == ["to be kept, acknowledged and lost"]
    assert Verdict(*stage).broken


def test_without_a_kill_nothing_may_come_twice(stage: tuple[Clients, Backend, Lives]) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    deliver(stage[1], stage[2], KEPT, 0)
    assert failed(stage) == ["delivered twice"]


def test_what_is_not_to_be_kept_must_not_come(stage: tuple[Clients, Backend, Lives]) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    deliver(stage[1], stage[2], DROPPED, 0)
    assert failed(stage) == ["not to be kept, and delivered"]


def test_memory_descriptors_and_threads_that_grow_in_the_second_half_of_a_life_are_a_leak(
    stage: tuple[Clients, Backend, Lives],
) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    stage[2].all[0].samples = [Sample(at, (100 + 6 * at) * MIB, 20 + 2 * at, 10 + at, MIB) for at in range(20)]
    assert failed(stage) == ["memory, in the second half of a life", "descriptors, likewise", "threads, likewise"]


def test_of_a_long_life_what_allocators_take_at_its_beginning_is_no_leak(
    stage: tuple[Clients, Backend, Lives],
) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    short, long = stage[2].all[0], Life(stage[2].all[0].process, 0.0)
    stage[2].all.append(long)
    short.samples = [Sample(20.0 * at, (100 + 2 * at) * MIB, 20, 10, MIB) for at in range(20)]
    long.samples = [Sample(20.0 * at, (100 + min(at, 36)) * MIB, 20, 10, MIB) for at in range(90)]
    assert failed(stage) == []
    long.samples = [Sample(20.0 * at, (100 + at // 3) * MIB, 20, 10, MIB) for at in range(90)]
    assert failed(stage) == ["memory, once a life is 12 min old"]


def test_an_error_in_the_log_is_told(stage: tuple[Clients, Backend, Lives], tmp_path: Path) -> None:
    deliver(stage[1], stage[2], KEPT, 0, 1)
    (tmp_path / "podtrail.log").write_text('{"level": "error", "msg": "ledger"}\n', encoding="utf-8")
    assert failed(stage) == ["errors in the log"]
