"""Components of others that fail in a running `podtrail`: said in its log, counted, and the pipelines go on."""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.toolbox import free_port, metrics, send, spans, until

THEIRS = '''
"""Components that fail where `fails` says, and hang where `hangs` says: only in leaving they can be told to end."""

import asyncio

from podtrail.component import Factory, StartError, Taken
from podtrail.config.types import Model
from podtrail.otlp import Batch


class Config(Model):
    fails: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()
    holds: bool = False
    loses: int = 0


class Moody:
    finite = False

    def __init__(self, config, context):
        self._config, self._ledger, self._inside = config, context.ledger, []
        self._try("create")

    def _try(self, method):
        if method in self._config.fails:
            raise KeyError(f"{method} of theirs")

    def admit(self, batch, now):
        self._try("admit")

    def add(self, batch, now):
        self._try("add")
        if self._config.loses:
            return Taken()
        if not self._config.holds:
            return Taken([batch])
        self._inside.append((now, batch))
        return Taken()

    def expire(self, now, limit):
        self._try("expire")
        return self.drain(now) or ()

    def deadline(self):
        return self._inside[0][0] + 1 if self._inside and "expire" in self._config.fails else None

    def held(self):
        return sum(batch.span_count for _, batch in self._inside)

    def held_since(self):
        return self._inside[0][0] if self._inside else None

    def take_over(self, predecessor, now):
        self._try("take_over")
        self._inside, predecessor._inside = predecessor._inside, []

    def drain(self, now):
        self._try("drain")
        out, self._inside = [batch for _, batch in self._inside], []
        return out

    async def __aenter__(self):
        self._try("enter")
        return self

    async def __aexit__(self, *_):
        self._try("exit")
        await self._hang("exit")

    async def _hang(self, method):
        while method in self._config.hangs:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if method == "exit":
                    raise

    async def run(self, consume):
        self._try("run")
        await self._hang("run")

    def observe(self, pipeline, batch):
        self._try("observe")

    def ready(self):
        self._try("ready")

    def not_ready(self):
        self._try("not_ready")

    async def send(self, batch):
        self._try("send")
        await self._hang("send")
        return None


PROCESSOR, RECEIVER, EXPORTER, EXTENSION = (
    Factory(kind=kind, type="moody", Config=Config, create=Moody)
    for kind in ("processor", "receiver", "exporter", "extension")
)
'''
KINDS = {f"moody_{kind}": f"theirs:{kind.upper()}" for kind in ("processor", "receiver", "exporter", "extension")}
Configuration = dict[str, Any]


@pytest.fixture
def theirs(distribution: Callable[..., Path]) -> dict[str, str]:
    """The environment in which `moody` is installed, as a component of each kind."""
    return {"PYTHONPATH": str(distribution("theirs", {"theirs": THEIRS}, KINDS))}


@pytest.fixture
def moody(otlp_to_file: Configuration) -> Callable[..., Configuration]:
    """Return a function that gives a configuration with the processor `moody`."""

    def configuration(**settings: Any) -> Configuration:
        otlp_to_file["receivers"]["otlp"]["protocols"]["http"] = {"endpoint": "127.0.0.1:0"}
        otlp_to_file["processors"] = {"moody": settings}
        otlp_to_file["service"]["pipelines"]["traces"]["processors"] = ["moody"]
        otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{free_port()}"}}
        return otlp_to_file

    return configuration


def page(configuration: Configuration) -> int:
    return int(configuration["service"]["telemetry"]["metrics"]["address"].partition(":")[2])


def entries(process: Any, level: str = "error") -> list[dict[str, Any]]:
    found = [json.loads(line) for line in process.lines if line.startswith("{")]
    return [entry for entry in found if entry["level"] == level]


@pytest.mark.parametrize("method", ["add", "admit"])
def test_a_request_that_a_processor_fails_on_gets_an_answer_that_is_not_repeated(
    method: str, start: Any, theirs: dict[str, str], moody: Any
) -> None:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    configuration = moody(fails=[method])
    process = start(configuration, **theirs)
    request = encode_spans(spans(2)).SerializeToString()
    service = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    with grpc.insecure_channel(f"127.0.0.1:{process.port()}") as channel:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(service)
        with pytest.raises(grpc.RpcError) as refused:
            export(request, timeout=120)
    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert str(refused.value.details()).startswith("a processor failed: 6 spans are lost")

    url = f"http://127.0.0.1:{process.port('http')}/v1/traces"
    post = urllib.request.Request(url, request, {"Content-Type": "application/x-protobuf"})
    with pytest.raises(urllib.error.HTTPError) as answer, urllib.request.urlopen(post, timeout=120):
        pass
    with answer.value:
        assert (answer.value.code, answer.value.headers["Retry-After"]) == (500, None)

    told = metrics(page(configuration))
    assert told['podtrail_ledger_spans{exporter="file",term="missing"}'] == 0
    assert told['podtrail_dropped_spans_total{exporter="file",reason="processor_error"}'] == 12
    assert told['otelcol_receiver_accepted_spans{receiver="otlp",transport="grpc"}'] == 6
    assert told['podtrail_component_failures_total{component="moody",pipeline="traces"}'] == 2
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    (line,) = entries(process)
    assert (line["component"], line["pipeline"]) == ("moody", "traces")
    assert f"failed in {method}: KeyError: '{method} of theirs'; 6 spans dropped (processor_error)" in line["msg"]
    assert 'raise KeyError(f"{method} of theirs")' in line["stacktrace"]


def test_an_expiry_that_always_fails_neither_spins_nor_floods_and_the_end_counts_what_was_inside(
    start: Any,
    theirs: dict[str, str],
    moody: Any,
) -> None:
    configuration = moody(fails=["expire", "drain"], holds=True)
    process = start(configuration, **theirs)
    assert send(process.port()) is SpanExportResult.SUCCESS

    failures = 'podtrail_component_failures_total{component="moody",pipeline="traces"}'
    until(lambda: metrics(page(configuration)).get(failures, 0) >= 2)

    assert metrics(page(configuration))[failures] <= 3
    process.tell(signal.SIGTERM)
    process.line(r"3 received = 3 dropped \(processor_error 3\)")
    process.end()
    assert [entry["msg"].partition(":")[0] for entry in entries(process)] == ["failed in expire", "failed in drain"]


def test_onlookers_and_watchers_that_fail_change_nothing(
    start: Any, theirs: dict[str, str], moody: Any, kept: Any
) -> None:
    configuration = moody()
    configuration["extensions"] = {"moody": {"fails": ["observe", "ready", "not_ready", "exit"]}}
    configuration["service"]["extensions"] = ["moody"]
    process = start(configuration, **theirs)
    assert send(process.port(), traces=2) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert [len(spans) for spans in kept().values()] == [3, 3]
    told = {entry["msg"].partition(":")[0] for entry in entries(process) if entry["component"] == "moody"}
    assert told == {"failed in observe", "failed in ready", "failed in not_ready", "failed in stop"}


@pytest.mark.parametrize(("kind", "method"), [("extension", "create"), ("extension", "enter"), ("processor", "create")])
def test_a_component_that_fails_in_starting_is_named(
    kind: str, method: str, start: Any, theirs: dict[str, str], moody: Any
) -> None:
    configuration = moody(fails=[method] if kind == "processor" else [])
    if kind == "extension":
        configuration["extensions"] = {"moody": {"fails": [method]}}
        configuration["service"]["extensions"] = ["moody"]
    process = start(configuration, **theirs)
    assert process.end() == 1
    (line,) = entries(process)
    assert line["msg"] == f"failed in start: KeyError: '{method} of theirs'"
    assert "stacktrace" in line
    assert process.lines[-1] == f"podtrail: {kind}s::moody: failed in start: KeyError: '{method} of theirs'"


def test_a_receiver_that_fails_ends_podtrail_in_order_and_is_named(
    start: Any, theirs: dict[str, str], moody: Any
) -> None:
    configuration = moody()
    configuration["receivers"]["moody"] = {"fails": ["run"]}
    configuration["service"]["pipelines"]["traces"]["receivers"].append("moody")
    process = start(configuration, **theirs)
    assert process.end() == 1
    (line,) = entries(process)
    assert (line["component"], line["msg"]) == ("moody", "failed in run: KeyError: 'run of theirs'; podtrail stops")
    assert process.lines[-1] == "podtrail: receivers::moody: failed in run: KeyError: 'run of theirs'"
    process.line("stopped: file: 0 received")


def test_an_exporter_that_fails_or_answers_nonsense_loses_its_batch_and_says_so(
    start: Any,
    theirs: dict[str, str],
    moody: Any,
) -> None:
    configuration = moody()
    configuration["exporters"] |= {"moody/raises": {"fails": ["send"]}, "moody/none": {}}
    configuration["service"]["pipelines"]["traces"]["exporters"] += ["moody/raises", "moody/none"]
    process = start(configuration, **theirs)
    assert send(process.port()) is SpanExportResult.SUCCESS

    def dropped() -> list[float]:
        told = metrics(page(configuration))
        ids = ("moody/raises", "moody/none")
        return [told.get(f'podtrail_dropped_spans_total{{exporter="{id}",reason="permanent"}}', 0) for id in ids]

    until(lambda: dropped() == [3, 3])
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    said = {entry["component"]: entry["msg"] for entry in entries(process) if "stacktrace" in entry}
    assert said == {
        "moody/raises": "failed in send: KeyError: 'send of theirs'",
        "moody/none": "failed in send: TypeError: send returned None, not a number of rejected spans",
    }


def test_components_that_hang_and_will_not_be_told_to_end_keep_podtrail_from_ending_no_longer_than_its_time(
    start: Any, theirs: dict[str, str], moody: Any
) -> None:
    configuration = moody()
    configuration["receivers"]["moody"] = {"hangs": ["run"]}
    configuration["exporters"] |= {"moody/send": {"hangs": ["send"]}, "moody/exit": {"hangs": ["exit"]}}
    configuration["extensions"] = {"moody": {"hangs": ["exit"]}}
    configuration["service"]["extensions"] = ["moody"]
    pipeline = configuration["service"]["pipelines"]["traces"]
    pipeline["receivers"].append("moody")
    pipeline["exporters"] += ["moody/send", "moody/exit"]
    process = start(configuration, **theirs)
    assert send(process.port()) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 1
    process.line("stopped: file: 3 received = 3 delivered")
    process.line("stopped: moody/send: 3 received = 3 dropped .shutdown 3.")
    assert {(entry["component"], entry["msg"].partition(":")[0]) for entry in entries(process)} >= {
        ("moody", "failed in run"),
        ("moody", "failed in stop"),
        ("moody/send", "failed in send"),
        ("moody/exit", "failed in stop"),
    }


def test_a_reload_that_fails_in_making_a_component_changes_nothing_and_one_in_taking_over_loses_nothing(
    start: Any, configure: Any, theirs: dict[str, str], moody: Any, kept: Any
) -> None:
    process = start(moody(holds=True), **theirs)
    assert send(process.port()) is SpanExportResult.SUCCESS
    configure(moody(fails=["create"]))
    process.tell(signal.SIGHUP)
    process.line("nothing changed")
    configuration = moody(fails=["take_over"])
    configure(configuration)
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: reloaded")
    assert send(process.port()) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 2
    assert {entry["msg"].partition(":")[0] for entry in entries(process)} == {
        "failed in start",
        "SIGHUP",
        "failed in take_over",
    }


def test_spans_that_are_missing_are_an_error_with_a_hint(start: Any, theirs: dict[str, str], moody: Any) -> None:
    process = start(moody(loses=1), **theirs)
    assert send(process.port()) is SpanExportResult.SUCCESS
    process.line("file: the books do not balance: 3 received = 3 missing; a processor has lost spans")
    (line,) = entries(process)
    assert "podtrail.testing.contracts" in line["msg"]
    process.tell(signal.SIGTERM)
    assert process.end() == 1
    assert len(entries(process)) == 1
