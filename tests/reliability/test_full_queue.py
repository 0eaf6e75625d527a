"""A full sending queue: who is refused, who loses what, and that nothing else happens to a span."""

import http.client
import signal
from collections import Counter
from typing import Any

import grpc
import pytest

from podtrail.pipeline.sending.plan import PATIENCE
from tests.reliability.conftest import Answer, Sender, configuration, dropped, otlp_exporter
from tests.service.toolbox import free_port, metrics, until

SMALL = {"sizer": "items", "queue_size": 6, "num_consumers": 2}
"""Room for two requests."""
BLOCKING = SMALL | {"block_on_overflow": True}
COLLECTOR_TIMEOUT = 5.0
"""Seconds after which the Collector's exporters give a request up; SDKs wait longer, and so does the sender here."""
PASSING: dict[str, dict[str, Any]] = {
    "nothing": {},
    "attributes": {"attributes": {"actions": [{"key": "longer", "value": "x" * 100, "action": "insert"}]}},
    "batch that passes on": {"batch": {"timeout": "0s"}},
    "link_stitching that passes on": {"link_stitching": {"reorder_wait": "0s"}},
    "memory_limiter": {"memory_limiter": {"check_interval": "1s", "limit_mib": 4000}},
}


def equation(process: Any, terms: str) -> None:
    """End a process and hold its ledger against these terms."""
    process.tell(signal.SIGTERM)
    process.end()
    assert process.line(f"stopped: {terms}")
    assert "missing" not in process.log
    assert "Traceback" not in process.log


def refused(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if not answer.taken]


@pytest.mark.parametrize("processors", PASSING.values(), ids=PASSING)
def test_who_is_refused_tries_again_and_loses_nothing_and_nothing_comes_twice(
    start: Any, sender: Any, stalled: Any, processors: dict[str, Any]
) -> None:
    page = free_port()
    exporter = otlp_exporter(stalled.port, sending_queue=SMALL)
    process = start(configuration({"otlp_grpc": exporter}, processors, page))
    here: Sender = sender(process)
    requests = [here.next() for _ in range(40)]
    answers = [here.send(request) for request in requests]
    assert [answer.taken for answer in answers] == [True] * 2 + [False] * 38
    assert {answer.code for answer in refused(answers)} == {grpc.StatusCode.UNAVAILABLE}
    assert all(answer.retry_info and "queue of otlp_grpc is full" in answer.details for answer in refused(answers))
    shown = metrics(page)
    labels = 'receiver="otlp",transport="grpc"'
    assert shown[f"otelcol_receiver_accepted_spans{{{labels}}}"] == 6
    assert shown[f"otelcol_receiver_refused_spans{{{labels}}}"] == 114
    assert shown['otelcol_exporter_enqueue_failed_spans{exporter="otlp_grpc"}'] == 114
    stalled.open.set()
    here.send_again_until_taken(
        [request for request, answer in zip(requests, answers, strict=True) if not answer.taken]
    )
    equation(process, "otlp_grpc: 120 received = 120 delivered")
    assert stalled.came == here.acknowledged
    assert set(stalled.came.values()) == {1}
    assert process.line("the queue is full: refused requests with 3 spans, to be sent again, since .*queue_size")


def test_over_http_the_refused_are_told_when_to_try_again(start: Any, sender: Any, stalled: Any) -> None:
    process = start(configuration({"otlp_grpc": otlp_exporter(stalled.port, sending_queue=SMALL)}))
    here: Sender = sender(process)
    while here.send(here.next()).taken:
        pass
    connection = http.client.HTTPConnection("127.0.0.1", process.port("http"), timeout=120)
    body = here.next().SerializeToString()
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert b"queue of otlp_grpc is full" in said


HOLDING: dict[str, dict[str, Any]] = {
    "a sampler": {"tail_sampling": {"decision_wait": "100ms", "policies": [{"name": "all", "type": "always_sample"}]}},
    "a batch that waits": {"batch": {"timeout": "50ms"}},
}


@pytest.mark.parametrize("processors", HOLDING.values(), ids=HOLDING)
def test_behind_what_holds_spans_the_loss_is_counted_and_said(
    start: Any,
    sender: Any,
    stalled: Any,
    processors: dict[str, Any],
) -> None:
    page = free_port()
    exporter = otlp_exporter(stalled.port, sending_queue=SMALL)
    process = start(configuration({"otlp_grpc": exporter}, processors, page))
    here: Sender = sender(process)

    def lost() -> float:
        return float(metrics(page).get('podtrail_dropped_spans_total{exporter="otlp_grpc",reason="queue_full"}', 0))

    sent = 0
    while not lost():
        assert here.send(here.next()).taken
        sent += 3
    for _ in range(20):
        assert here.send(here.next()).taken
        sent += 3
    until(lambda: metrics(page)['podtrail_ledger_spans{exporter="otlp_grpc",term="in_memory"}'] == 0)
    gone = int(lost())
    stalled.open.set()
    equation(process, rf"otlp_grpc: {sent} received = {sent - gone} delivered \+ {gone} dropped \(queue_full {gone}\)")
    assert stalled.came.total() == sent - gone
    assert set(stalled.came.values()) == {1}
    assert dropped(process) == gone
    said = [line for line in process.lines if "queue is full" in line]
    assert len(said) <= 2, "at once, and the rest at the end"
    assert all('"warn"' in line and "since" in line and "queue_size" in line for line in said)


@pytest.mark.parametrize(("separate", "blocking"), [(False, True), (True, False)])
def test_a_full_exporter_loses_its_own_spans_and_holds_no_other_back(
    start: Any, sender: Any, stalled: Any, healthy: Any, separate: bool, blocking: bool
) -> None:
    queue = BLOCKING if blocking else SMALL
    exporters = {
        "otlp_grpc/stalled": otlp_exporter(stalled.port, sending_queue=queue),
        "otlp_grpc/healthy": otlp_exporter(healthy.port),
    }
    config = configuration(exporters)
    if separate:
        config["service"]["pipelines"] = {
            f"traces/{at}": {"receivers": ["otlp"], "exporters": [id]} for at, id in enumerate(exporters)
        }
    process = start(config)
    here: Sender = sender(process)
    answers = [here.send(here.next()) for _ in range(40)]
    assert not refused(answers)
    until(lambda: healthy.came == here.acknowledged)
    stalled.open.set()
    process.tell(signal.SIGTERM)
    process.end()
    assert process.line("stopped: otlp_grpc/healthy: 120 received = 120 delivered")
    assert process.line(r"stopped: otlp_grpc/stalled: 120 received = 6 delivered \+ 114 dropped \(queue_full 114\)")
    assert (stalled.came.total(), dropped(process)) == (6, 114)


def test_one_of_two_full_exporters_is_enough_to_take_spans_none_is_not(start: Any, sender: Any, stalled: Any) -> None:
    exporters = {
        "otlp_grpc/stalled": otlp_exporter(stalled.port, sending_queue=SMALL),
        "otlp_grpc/down": otlp_exporter(free_port(), sending_queue=SMALL | {"queue_size": 12}),
    }
    process = start(configuration(exporters))
    here: Sender = sender(process)
    answers = [here.send(here.next()) for _ in range(10)]
    assert [answer.taken for answer in answers] == [True] * 4 + [False] * 6
    stalled.open.set()
    here.send_again_until_taken([here.next()])
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    process.tell(signal.SIGTERM)
    process.end()
    assert "missing" not in process.log


@pytest.mark.parametrize("queue", [BLOCKING, {"enabled": False}], ids=["block_on_overflow", "no queue"])
def test_a_sender_that_waits_for_room_is_refused_before_it_gives_up(
    start: Any, sender: Any, stalled: Any, queue: dict[str, Any]
) -> None:
    process = start(configuration({"otlp_grpc": otlp_exporter(stalled.port, timeout="1h", sending_queue=queue)}))
    here: Sender = sender(process)
    requests = [here.next() for _ in range(6)]
    answers: list[Answer] = []
    for request in requests:
        # As many senders at once as there are requests: none of them waits for the others.
        answers.append(here.send(request))
        if not answers[-1].taken:
            break
    assert answers[-1].code is grpc.StatusCode.UNAVAILABLE
    assert 1 < PATIENCE < COLLECTOR_TIMEOUT
    assert answers[-1].seconds > 1
    assert answers[-1].retry_info
    taken = Counter(here.acknowledged)
    stalled.open.set()
    process.tell(signal.SIGTERM)
    process.end()
    assert stalled.came == taken


def test_a_sampler_without_room_refuses_before_its_senders_give_up(start: Any, sender: Any, healthy: Any) -> None:
    sampler = {
        "decision_wait": "1h",
        "num_traces": 2,
        "block_on_overflow": True,
        "policies": [{"name": "all", "type": "always_sample"}],
    }
    process = start(configuration({"otlp_grpc": otlp_exporter(healthy.port)}, {"tail_sampling": sampler}))
    here: Sender = sender(process)
    answers = [here.send(here.next()) for _ in range(4)]
    assert [answer.taken for answer in answers] == [True] * 3 + [False]  # what did not fit of the third waits inside
    assert answers[-1].code is grpc.StatusCode.UNAVAILABLE
    equation(process, "otlp_grpc: 9 received = 9 delivered")
    assert healthy.came == here.acknowledged


def test_told_to_stop_podtrail_reloads_no_more(start: Any, configure: Any, sender: Any, stalled: Any) -> None:
    def config(size: int) -> dict[str, Any]:
        return configuration({"otlp_grpc": otlp_exporter(stalled.port, sending_queue={"queue_size": size})})

    process = start(config(10)).ready()
    client = sender(process)
    assert client.send(client.next()).taken
    configure(config(11))
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: the new configuration is right, swapping")
    process.tell(signal.SIGHUP)
    process.tell(signal.SIGTERM)
    stalled.open.set()
    assert process.end() == 0
    process.line("stopped: otlp_grpc: 3 received = 3 delivered")
    assert sum("swapping" in line for line in process.lines) == 1
