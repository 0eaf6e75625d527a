"""A disk that is full: it costs its own exporter's spans at most, no other exporter waits, and it goes on by itself."""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.reliability.conftest import (
    MIB,
    Answer,
    Config,
    Sender,
    Spans,
    configuration,
    dropped,
    otlp_exporter,
)
from tests.reliability.disks import disk
from tests.service.toolbox import until

__all__ = ["disk"]

KEEP_ALL = {"tail_sampling": {"decision_wait": "50ms", "policies": [{"name": "all", "type": "always_sample"}]}}
TOO_MUCH = 80
"""Requests of a MiB: more than waits for a disk."""


def written(place: Path) -> Spans:
    """Return the ids of the spans in the file."""
    lines = (place / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    return Counter(
        bytes.fromhex(span["spanId"])
        for line in lines
        for resource_spans in json.loads(line)["resourceSpans"]
        for scope_spans in resource_spans["scopeSpans"]
        for span in scope_spans["spans"]
    )


def file_exporter(place: Path) -> Config:
    return {"path": str(place / "kept.jsonl"), "flush_interval": "0s"}


@pytest.mark.parametrize(("disk", "processors"), [("tmpfs", KEEP_ALL), ("limit", {})], indirect=["disk"])
def test_beside_a_full_disk_a_healthy_exporter_gets_everything(
    start: Any, sender: Any, healthy: Any, disk: Any, processors: Config
) -> None:
    exporters = {"file": file_exporter(disk.path), "otlp_grpc": otlp_exporter(healthy.port)}
    process = start(configuration(exporters, processors))
    here: Sender = sender(process)
    disk.fill(process)
    for _ in range(TOO_MUCH):
        assert here.send(here.next(spans=8, padding=MIB // 8)).taken
    until(lambda: healthy.came == here.acknowledged)
    process.line("cannot deliver, trying again.*kept.jsonl: (No space left on device|File too large)")
    process.line("the queue is full: dropped .* look at what it writes to")
    disk.make_room(process)
    process.line("delivers again")
    until(lambda: here.send(here.next()).taken)
    process.tell(signal.SIGTERM)
    process.end()
    received = 8 * TOO_MUCH + 3
    lost = dropped(process)
    assert 8 * 8 < lost < 8 * 30
    assert process.line(f"stopped: otlp_grpc: {received} received = {received} delivered")
    ledger = (
        rf"stopped: file: {received} received = {received - lost} delivered \+ {lost} dropped \(queue_full {lost}\)"
    )
    assert process.line(ledger)
    found = written(disk.path)
    assert found.total() == received - lost
    assert found <= here.acknowledged


@pytest.mark.parametrize("disk", ["limit"], indirect=True)
def test_alone_a_full_disk_refuses_and_loses_nothing(start: Any, sender: Any, disk: Any) -> None:
    process = start(configuration({"file": file_exporter(disk.path)}))
    here: Sender = sender(process)
    disk.fill(process)
    answers: list[Answer] = []
    while not answers or answers[-1].taken:
        request = here.next(spans=8, padding=MIB // 8)
        answers.append(here.send(request))
        assert len(answers) <= TOO_MUCH
    assert answers[-1].code is grpc.StatusCode.UNAVAILABLE
    assert answers[-1].retry_info
    disk.make_room(process)
    here.send_again_until_taken([request])
    process.tell(signal.SIGTERM)
    process.end()
    received = 8 * len(answers)
    assert process.line(f"stopped: file: {received} received = {received} delivered")
    assert written(disk.path) == here.acknowledged


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_on_is_no_other_exporters_concern(
    start: Any, sender: Any, healthy: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "disk" / "kept.jsonl"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        exporters = {"file": file_exporter(pipe.parent), "otlp_grpc": otlp_exporter(healthy.port)}
        process = start(configuration(exporters, KEEP_ALL))
        here: Sender = sender(process)
        for _ in range(TOO_MUCH):
            assert here.send(here.next(spans=8, padding=MIB // 8)).taken
        until(lambda: healthy.came == here.acknowledged)
        process.tell(signal.SIGTERM)
        assert process.end() == 1
    finally:
        os.close(reader)
    sent = 8 * TOO_MUCH
    assert process.line(f"stopped: otlp_grpc: {sent} received = {sent} delivered")
    assert process.line(rf"stopped: file: {sent} received = (\d+ delivered \+ )?{sent} dropped")
    assert process.line("kept.jsonl hangs, and is left as it is")


@pytest.mark.slow
def test_decisions_that_nobody_has_read_at_the_end_are_told_of(start: Any, sender: Any, tmp_path: Path) -> None:
    fifo = tmp_path / "decisions.jsonl"
    os.mkfifo(fifo)
    process = start(configuration({"file": {**file_exporter(tmp_path), "decisions_path": str(fifo)}}, KEEP_ALL))
    here: Sender = sender(process)
    assert here.send(here.next(spans=8)).taken
    process.tell(signal.SIGTERM)
    process.end()
    assert process.line(r"dropped 8 spans and \d+ decisions \(shutdown\)")
    assert process.line("stopped: file: 8 received = 8 dropped")
