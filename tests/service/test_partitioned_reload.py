"""SIGHUP and SIGTERM of a `podtrail` that reads Kafka: partitions stay or go, and every span is accounted for."""

import copy
import json
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from podtrail.cli import main
from tests.kafka.cluster import Kafka
from tests.service.conftest import Process
from tests.service.toolbox import free_port, metrics, send

pytestmark = pytest.mark.kafka

BEGIN = 1_700_000_000
"""The time of the first record, Unix seconds; the clock on the wall has nothing to say (`idle_timeout`)."""
WAIT = 10
ALL = {"name": "all", "type": "always_sample"}
FAILED = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}


def trace(name: str, *, failed: bool = False) -> bytes:
    """A request with a trace of two spans."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in range(2):
        span = spans.add(
            name=name,
            trace_id=name.encode().rjust(16, b"-"),
            span_id=f"{number}{name}".encode().rjust(8, b"-")[-8:],
            start_time_unix_nano=1,
            end_time_unix_nano=2,
        )
        if number:
            span.parent_span_id = f"0{name}".encode().rjust(8, b"-")[-8:]
        elif failed:
            span.status.code = Status.STATUS_CODE_ERROR
    return request.SerializeToString()


@dataclass
class Gateway:
    """A configuration that reads one topic, and the process that runs it."""

    kafka: Kafka
    folder: Path
    launch: Callable[..., Process]
    configure: Callable[[Mapping[str, Any]], None]
    page: int
    ledger: Callable[[int], Mapping[str, float]]
    topic: str
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = {
            "receivers": {"kafka": self.receiver(self.topic)},
            "processors": {"tail_sampling": {"decision_wait": f"{WAIT}s", "policies": [ALL]}},
            "exporters": {"file": self.file("kept")},
            "service": {
                "telemetry": {"metrics": {"address": f"127.0.0.1:{self.page}"}},
                "pipelines": {
                    "traces": {"receivers": ["kafka"], "processors": ["tail_sampling"], "exporters": ["file"]}
                },
            },
        }

    def receiver(self, topic: str) -> dict[str, Any]:
        """Settings of a receiver of a topic."""
        return {
            "brokers": self.kafka.addresses(),
            "traces": {"topics": [topic]},
            "group_id": f"group-{self.topic}",
            "initial_offset": "earliest",
            "heartbeat_interval": "500ms",
            "autocommit": {"interval": "100ms"},
            "checkpoints": {"topic": f"checkpoints-{self.topic}"},
            "idle_timeout": "0s",
        }

    def file(self, name: str) -> dict[str, Any]:
        """Settings of an exporter that writes to a file of that name."""
        return {
            "path": str(self.folder / f"{name}.jsonl"),
            "decisions_path": str(self.folder / f"{name}-decisions.jsonl"),
            "append": True,
            "flush_interval": "10ms",
        }

    @property
    def pipelines(self) -> dict[str, Any]:
        """The pipelines, to be changed."""
        found: dict[str, Any] = self.config["service"]["pipelines"]
        return found

    def changed(self) -> "Gateway":
        """Return the same with a configuration to be changed."""
        other = copy.copy(self)
        other.config = copy.deepcopy(self.config)
        return other

    def start(self) -> Process:
        """Run it."""
        return self.launch(self.config).ready()

    def reload(self, process: Process, says: str = "SIGHUP: reloaded") -> None:
        """Have a process read it."""
        self.configure(self.config)
        before = len(process.lines)
        process.tell(signal.SIGHUP)
        process.line(says, after=before)
        self.is_even(process)

    def write(self, names: Sequence[str], at: int, *, failed: Sequence[str] = (), topic: str = "") -> None:
        """Write the same traces into both partitions, so many seconds after the beginning."""
        for partition in (0, 1):
            values = [trace(f"{name}{partition}", failed=name in failed) for name in names]
            self.kafka.produce(topic or self.topic, values, partition=partition, time_ms=(BEGIN + at) * 1000)

    def write_all(self, names: Sequence[str]) -> None:
        """Write a trace a second, by the time of the records."""
        for at, name in enumerate(names):
            self.write([name], at)

    def await_more(self, load: Future[None]) -> None:
        """Wait until more has come than now, as long as there is a load."""
        before = self.terms()["received"]
        self.kafka.wait_for(lambda: self.terms()["received"] > before or load.done(), "the load")

    def await_taken(self, records: int, topic: str = "") -> None:
        """Wait until so many records of each partition were taken, and that is committed."""
        self.kafka.wait_for(
            lambda: [left for _, left in self.committed(topic)] == [records] * 2, f"{records} records to be taken"
        )

    def await_done(self, records: int, topic: str = "") -> None:
        """Wait until so many records of each partition are needed no more."""
        self.kafka.wait_for(
            lambda: [offset for offset, _ in self.committed(topic)] == [records] * 2, f"{records} records to be done"
        )

    def committed(self, topic: str = "") -> list[tuple[int, int]]:
        """Return of each partition the offset committed and the position."""
        found = self.kafka.committed(f"group-{self.topic}", topic or self.topic)
        return [(offset, json.loads(note)["left"][0]) for _, (offset, note) in sorted(found.items()) if note]

    def terms(self, exporter: str = "file") -> dict[str, int]:
        """Return the ledger of an exporter."""
        told = self.ledger(self.page)
        names = ("received", "delivered", "sampled_out", "in_memory", "in_queue", "missing")
        return {name: int(told[f'podtrail_ledger_spans{{exporter="{exporter}",term="{name}"}}']) for name in names}

    def is_even(self, process: Process) -> None:
        """Check that no span is missing anywhere."""
        told = {name: value for name, value in self.ledger(self.page).items() if 'term="missing"' in name}
        assert told
        assert set(told.values()) == {0.0}, told
        assert "do not balance" not in process.log

    def stop(self, process: Process, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process in order."""
        process.tell(number)
        assert process.end() == 0
        assert "do not balance" not in process.log
        assert "missing" not in "".join(line for line in process.lines if "stopped: " in line)


@pytest.fixture
def gateway(
    kafka: Kafka,
    tmp_path: Path,
    start: Any,
    configure: Any,
) -> Gateway:
    """A gateway that samples a topic of two partitions into `kept.jsonl`."""
    return Gateway(kafka, tmp_path, start, configure, free_port(), metrics, kafka.topic(partitions=2))


def names(lines: Callable[[str], list[dict[str, Any]]], file: str = "kept.jsonl") -> list[str]:
    """The names of the spans in a file."""
    return sorted(
        span["name"]
        for request in lines(file)
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    )


def both(*of: str, times: int = 2) -> list[str]:
    """The names of the spans of such traces in both partitions."""
    return sorted(f"{name}{partition}" for name in of for partition in (0, 1) for _ in range(times))


def decided(
    lines: Callable[[str], list[dict[str, Any]]], file: str = "kept-decisions.jsonl"
) -> dict[str, tuple[str, float, float]]:
    """What was decided of each trace, when it had come and when that was, in seconds since the beginning.

    What is due is decided within a tenth of a second: that is left out.
    """

    def seconds(line: Mapping[str, Any], key: str) -> float:
        return round((int(line[key]) - BEGIN * 10**9) / 1e9, 3)

    found = {}
    for line in lines(file):
        name = bytes.fromhex(line["traceId"]).decode().strip("-")
        assert name not in found, f"{name} is decided twice"
        found[name] = (line["decision"], seconds(line, "arrivedAtUnixNano"), seconds(line, "decidedAtUnixNano") // 1)
    return found


def test_undecided_traces_keep_their_arrival_and_are_judged_by_the_new_policies(
    gateway: Gateway, json_lines: Any
) -> None:
    gateway.write(["held"], 0)
    process = gateway.start()
    gateway.await_taken(1)
    after = gateway.changed()
    after.config["processors"]["tail_sampling"]["policies"] = [FAILED]
    after.reload(process)
    assert after.terms()["in_memory"] == 4
    gateway.write(["bad", "good"], 5, failed=["bad"])
    gateway.write(["end"], 60)
    gateway.await_taken(4)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("bad"), "what failed")
    gateway.stop(process)
    assert decided(json_lines) == {
        **{f"held{number}": ("not_sampled", 0.0, WAIT) for number in (0, 1)},
        **{f"bad{number}": ("sampled", 5.0, 5.0 + WAIT) for number in (0, 1)},
        **{f"good{number}": ("not_sampled", 5.0, 5.0 + WAIT) for number in (0, 1)},
    }


def test_who_starts_after_a_crash_decides_as_the_reload_before_it_has_it(gateway: Gateway, json_lines: Any) -> None:
    gateway.write(["held", "wrong"], 0, failed=["wrong"])
    first = gateway.start()
    gateway.await_taken(2)
    after = gateway.changed()
    after.config["processors"]["tail_sampling"]["policies"] = [FAILED]
    after.reload(first)
    gateway.write(["late"], 5)
    gateway.await_taken(3)
    first.close()
    second = after.start()
    gateway.write(["end"], 60)
    gateway.await_taken(4)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("wrong"), "what failed")
    gateway.stop(second)
    assert {name: found for name, (found, _, when) in decided(json_lines).items() if when <= 5.0 + WAIT} == {
        **{f"held{number}": "not_sampled" for number in (0, 1)},
        **{f"wrong{number}": "sampled" for number in (0, 1)},
        **{f"late{number}": "not_sampled" for number in (0, 1)},
    }


def test_who_starts_with_other_policies_judges_by_the_old_ones_what_the_last_owner_had_judged(
    gateway: Gateway, json_lines: Any
) -> None:
    gateway.write(["early"], 0)
    gateway.write(["held"], 15)
    first = gateway.start()
    gateway.await_taken(2)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("early"), "what is due")
    gateway.await_done(1)
    first.close()
    after = gateway.changed()
    after.config["processors"]["tail_sampling"]["policies"] = [FAILED]
    second = after.start()
    gateway.write(["end"], 60)
    gateway.await_taken(3)
    gateway.kafka.wait_for(lambda: "held0" in decided(json_lines) and "held1" in decided(json_lines), "the verdict")
    gateway.stop(second)
    assert names(json_lines) == both("early")
    assert {name: found for name, (found, _, _) in decided(json_lines).items()} == {
        **{f"early{number}": "sampled" for number in (0, 1)},
        **{f"held{number}": "not_sampled" for number in (0, 1)},
    }


def test_an_exporter_that_joins_gets_what_leaves_from_then_on_and_one_that_leaves_nothing_more(
    gateway: Gateway, json_lines: Any
) -> None:
    gateway.write(["one"], 0)
    gateway.write(["two"], 20)
    process = gateway.start()
    gateway.kafka.wait_for(lambda: names(json_lines) == both("one"), "the first traces")
    joined = gateway.changed()
    joined.config["exporters"]["file/second"] = gateway.file("second")
    joined.pipelines["traces"]["exporters"].append("file/second")
    joined.reload(process)
    gateway.write(["three"], 40)
    gateway.kafka.wait_for(lambda: names(json_lines, "second.jsonl") == both("two"), "the second traces")
    left = joined.changed()
    del left.config["exporters"]["file"]
    left.pipelines["traces"]["exporters"] = ["file/second"]
    left.reload(process)
    gateway.write(["end"], 60)
    gateway.kafka.wait_for(lambda: names(json_lines, "second.jsonl") == both("two", "three"), "the third traces")
    gateway.await_taken(4)
    assert gateway.terms("file/second")["missing"] == 0
    gateway.stop(process)
    assert names(json_lines) == both("one", "two")


def test_what_a_removed_exporter_could_not_deliver_holds_up_no_offset(
    gateway: Gateway, json_lines: Any, black_hole: int
) -> None:
    gateway.config["exporters"]["otlp_grpc"] = {"endpoint": f"127.0.0.1:{black_hole}", "tls": {"insecure": True}}
    gateway.pipelines["traces"]["exporters"].append("otlp_grpc")
    gateway.write(["one"], 0)
    gateway.write(["end"], 60)
    process = gateway.start()
    gateway.kafka.wait_for(lambda: names(json_lines) == both("one"), "the first traces")
    gateway.await_taken(2)
    assert [offset for offset, _ in gateway.committed()] == [0, 0]
    left = gateway.changed()
    del left.config["exporters"]["otlp_grpc"]
    left.pipelines["traces"]["exporters"] = ["file"]
    left.reload(process)
    gateway.write(["last"], 61)
    gateway.await_done(1)
    told = gateway.ledger(gateway.page)
    assert told['podtrail_partition_abandoned_spans_total{receiver="kafka"}'] == 4
    gateway.stop(process)


def test_another_topic_is_read_and_the_first_one_is_gone_on_with_where_it_was_left(
    gateway: Gateway, json_lines: Any
) -> None:
    other = gateway.kafka.topic(partitions=2)
    gateway.write(["held"], 0)
    gateway.write(["elsewhere"], 0, topic=other)
    process = gateway.start()
    gateway.await_taken(1)
    moved = gateway.changed()
    moved.config["receivers"]["kafka"] = gateway.receiver(other)
    moved.reload(process)
    gateway.write(["end"], 60, topic=other)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("elsewhere"), "the other topic")
    assert gateway.terms()["in_memory"] == 4, "what was held of the first topic was never received"
    gateway.write(["end"], 60)
    gateway.reload(process)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("elsewhere", "held"), "the first topic")
    gateway.is_even(process)
    gateway.stop(process)
    assert {name for name in decided(json_lines) if not name.startswith("end")} == {
        f"{name}{number}" for name in ("held", "elsewhere") for number in (0, 1)
    }


def test_a_receiver_that_is_removed_leaves_its_partitions_to_whoever_reads_them_next(
    gateway: Gateway, json_lines: Any
) -> None:
    gateway.write(["held"], 0)
    process = gateway.start()
    gateway.await_taken(1)
    behind_otlp = gateway.changed()
    behind_otlp.config["receivers"] = {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}}
    behind_otlp.pipelines["traces"]["receivers"] = ["otlp"]
    behind_otlp.reload(process)
    assert gateway.terms()["in_memory"] == 0
    send(process.port(), traces=1, spans=3, name="otlp")
    assert gateway.terms()["in_memory"] == 3
    gateway.reload(process)
    gateway.write(["end"], 60)
    gateway.kafka.wait_for(lambda: set(names(json_lines)) >= set(both("held")), "what was held")
    gateway.is_even(process)
    gateway.stop(process)
    assert names(json_lines) == sorted([*both("held"), "otlp", "Filter", "Filter"]), (
        "what came by OTLP was decided, too"
    )


def test_a_configuration_that_is_wrong_or_cannot_start_changes_nothing(
    gateway: Gateway, json_lines: Any, occupied: int
) -> None:
    gateway.write(["held"], 0)
    process = gateway.start()
    gateway.await_taken(1)
    wrong = gateway.changed()
    wrong.config["receivers"]["otlp"] = {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}
    wrong.pipelines["traces"]["receivers"].append("otlp")
    wrong.reload(process, "SIGHUP: nothing changed.*")
    assert "receiver 'otlp' can't feed a pipeline that 'kafka' feeds" in process.log
    wrong.config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{occupied}"
    wrong.pipelines["traces"]["receivers"] = ["kafka"]
    wrong.pipelines["traces/otlp"] = {"receivers": ["otlp"], "exporters": ["file"]}
    wrong.config["processors"]["tail_sampling"]["policies"] = [FAILED]
    wrong.reload(process, "the old configuration runs on")
    gateway.write(["end"], 60)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("held"), "what was held")
    gateway.await_taken(2)
    gateway.is_even(process)
    gateway.stop(process)


def test_two_pipelines_of_one_receiver_share_an_exporter_and_one_of_them_goes(
    gateway: Gateway, json_lines: Any
) -> None:
    gateway.pipelines["traces/all"] = {"receivers": ["kafka"], "exporters": ["file"]}
    gateway.write(["one"], 0)
    process = gateway.start()
    gateway.kafka.wait_for(lambda: names(json_lines) == both("one"), "what one pipeline passes on")
    gateway.is_even(process)
    alone = gateway.changed()
    del alone.pipelines["traces/all"]
    alone.reload(process)
    gateway.write(["end"], 60)
    gateway.kafka.wait_for(lambda: names(json_lines) == both("one", times=4), "what the other one has decided")
    gateway.await_done(1)
    terms = gateway.terms()
    assert (terms["received"], terms["delivered"], terms["in_memory"]) == (12, 8, 4)
    gateway.stop(process)


def test_reloads_and_stops_under_load_lose_nothing_and_part_no_trace(gateway: Gateway, json_lines: Any) -> None:
    count = 400
    other = gateway.changed()
    other.config["processors"]["tail_sampling"]["decision_cache"] = {"sampled_cache_size": 100}
    other.config["exporters"]["file/second"] = gateway.file("second")
    other.pipelines["traces"]["exporters"].append("file/second")
    process = gateway.start()
    written = [f"n{number:03}" for number in range(count)]
    with ThreadPoolExecutor(1) as beside:
        load = beside.submit(gateway.write_all, written)
        for after in (other, gateway, other, gateway):
            gateway.await_more(load)
            after.reload(process)
        gateway.stop(process)
        process = gateway.start()
        gateway.await_more(load)
        gateway.stop(process)
        load.result()
    process = other.start()
    gateway.write(["end"], count + 60)
    gateway.kafka.wait_for(lambda: len(decided(json_lines)) == 2 * count, "all to be decided")
    gateway.kafka.wait_for(lambda: len(names(json_lines)) == 4 * count, "all to be delivered")
    gateway.is_even(process)
    gateway.stop(process)
    assert names(json_lines) == both(*written)
    late = {name: (came, when) for name, (_, came, when) in decided(json_lines).items() if when - came != WAIT}
    assert not late, "all wait as long as they would have without anything happening"


def test_a_partition_decides_as_a_replay_of_its_records_does(gateway: Gateway, json_lines: Any, tmp_path: Path) -> None:
    some = {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 30}}
    rate = {"name": "rate", "type": "rate_limiting", "rate_limiting": {"spans_per_second": 2}}
    gateway.config["processors"]["tail_sampling"]["policies"] = [FAILED, some, rate]
    gateway.config["exporters"]["recording"] = {"path": str(tmp_path / "arrivals.otlp")}
    gateway.pipelines["traces/recording"] = {"receivers": ["kafka"], "exporters": ["recording"]}
    for number in range(60):
        name = f"r{number:02}"
        value = trace(name, failed=number % 7 == 0)
        gateway.kafka.produce(gateway.topic, [value], partition=1, time_ms=BEGIN * 1000 + 300 * number)
    gateway.kafka.produce(gateway.topic, [trace("end")], partition=1, time_ms=(BEGIN + 60) * 1000)
    process = gateway.start()
    gateway.kafka.wait_for(lambda: len(decided(json_lines)) == 60, "all to be decided")
    gateway.stop(process)
    files = [str(tmp_path / name) for name in ("config.yaml", "replayed.jsonl", "arrivals.otlp")]
    replayed = CliRunner().invoke(main, ["replay", "--config", files[0], "--decisions", *files[1:]])
    assert replayed.exit_code == 0, replayed.output
    again = {name: verdict for name, (verdict, _, _) in decided(json_lines, "replayed.jsonl").items() if name != "end"}
    assert {name: verdict for name, (verdict, _, _) in decided(json_lines).items()} == again
    assert set(again.values()) == {"sampled", "not_sampled"}
