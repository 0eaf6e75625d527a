"""Gateways on one topic that are killed at random times under load: is each trace decided once, and as by one alone?

`python -m tests.kafka.kills --kills 50` (`./dev crashes --kafka`). Writers spread each trace over a second, with many
under way at once; gateways join, leave in order and are killed. Then one gateway of another group, whom nobody
disturbs, reads the same topic. Both have to keep the same spans of the same traces. With `--exactly-once` whoever reads
the kept spans as `read_committed` finds each once; without it, spans come twice only of what left a gateway that was
killed after its last commit.
"""

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException, Producer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.transport.kafka.failures import error_of
from tests.kafka.broker import Broker
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import DEFAULT_ASSETS
from tests.kafka.gateways import Gateways, Job
from tests.kafka.kill_verdict import Repetitions, Verdict, judge_spans

_SPANS = 4
_SPREAD = 1.0
"""Seconds between the first and the last span of a trace: less than gateways wait."""
_PARTITIONS = 6
_MOST = 4
"""Gateways at once."""
_SETTLING = 300.0


class Plan(NamedTuple):
    """What happens."""

    kills: int
    seed: int
    exactly_once: bool
    rate: int
    """Traces a second."""
    kill_broker: bool = False
    """One of several, half-way."""
    stall: float = 0.0
    """Seconds for which a broker hangs half-way: longer than a transaction may last."""
    named: bool = False
    """Whether gateways have names that stay."""
    pause: float = 4.0
    """Longest time between two things that happen, in seconds."""
    goes_on: float = 8.0
    """Seconds of writing behind the last kill."""


class Load(threading.Thread):
    """Writes traces until told to stop, span by span."""

    def __init__(self, kafka: Kafka, topic: str, rate: int) -> None:
        super().__init__(name="load", daemon=True)
        self._topic, self._rate = topic, rate
        self._producer = Producer(
            {"bootstrap.servers": kafka.bootstrap(), "acks": "all", "enable.idempotence": True, "log_level": 0}
        )
        self._ending = threading.Event()
        self.failed = 0
        self.written = 0

    def run(self) -> None:
        pending: list[tuple[float, int, int]] = []
        began = time.monotonic()
        for number in itertools.count():
            due = began + number / self._rate
            pending += [(due + _SPREAD * at / (_SPANS - 1), number, at) for at in range(_SPANS)]
            pending.sort()
            while pending and pending[0][0] <= due:
                _, trace, at = pending.pop(0)
                self._write(trace, at)
            if self._ending.wait(max(0.0, due - time.monotonic())):
                break
        for _, trace, at in pending:
            self._write(trace, at)
        self._producer.flush(60)

    def stop(self) -> None:
        """Write the rest of what is begun, and end."""
        self._ending.set()
        self.join()

    def _write(self, trace: int, at: int) -> None:
        id = _trace_id(trace)
        self._producer.produce(self._topic, _message(id, at), id.hex().encode(), on_delivery=self._ended)
        self._producer.poll(0)
        self.written += 1

    def _ended(self, error: object, _: object) -> None:
        self.failed += error is not None


def run(kafka: Kafka, plan: Plan, folder: Path) -> Verdict:
    """Have it happen, and judge it."""
    source = kafka.topic(partitions=_PARTITIONS)
    # The brokers say when a span is there: on a busy machine it may be under way for longer than between two commits.
    kept, alone = (kafka.topic(partitions=3, message_timestamp_type="LogAppendTime") for _ in range(2))
    gateways = Gateways(kafka, Job(source, kept, f"many-{source}", plan.exactly_once, plan.named), folder / "many")
    load = Load(kafka, source, plan.rate)
    left = 0
    try:
        gateways.add()
        gateways.add()
        load.start()
        left = _disturb(kafka, gateways, plan)
        load.stop()
        _await_the_end(kafka, f"many-{source}", source)
        for _ in list(gateways.alive):
            gateways.leave(0)
    finally:
        gateways.close()
    one = Gateways(kafka, Job(source, alone, f"one-{source}", exactly_once=False), folder / "one")
    try:
        one.add()
        _await_the_end(kafka, f"one-{source}", source)
        one.leave(0)
    finally:
        one.close()
    assert load.failed == 0, f"{load.failed} spans were not written"
    repetitions = Repetitions(kafka, source, f"many-{source}", folder / "many")
    seen = judge_spans(kafka, (kept, alone), repetitions)
    return Verdict(load.written, *seen, plan.kills, left, (*gateways.complaints(), *one.complaints()))


def _disturb(kafka: Kafka, gateways: Gateways, plan: Plan) -> int:
    """Kill, add, and have some leave; return how many left in order."""
    rng = random.Random(plan.seed)
    killed = left = 0
    half_way = plan.kills // 2
    while killed < plan.kills:
        time.sleep(rng.uniform(0.2, plan.pause))
        if len(gateways.alive) < _MOST and (len(gateways.alive) < 2 or rng.random() < 0.5):
            gateways.add()
        elif rng.random() < 0.2:
            gateways.leave(rng.randrange(len(gateways.alive)))
            left += 1
        else:
            gateways.kill(rng.randrange(len(gateways.alive)))
            killed += 1
            print(f"killed {killed} of {plan.kills}", end="\r", file=sys.stderr)
            if killed == half_way:
                _disturb_broker(kafka.brokers[rng.randrange(len(kafka.brokers))], plan)
    if not gateways.alive:
        gateways.add()
    time.sleep(plan.goes_on)
    return left


def _disturb_broker(broker: Broker, plan: Plan) -> None:
    if plan.kill_broker:
        broker.kill()
    elif plan.stall:
        broker.stall()
        time.sleep(plan.stall)
        broker.go_on()


def _await_the_end(kafka: Kafka, group: str, topic: str) -> None:
    """Return when a group needs no record any more: everything is decided and delivered."""
    deadline = time.monotonic() + _SETTLING
    while time.monotonic() < deadline:
        try:
            committed, ends = kafka.committed(group, topic), kafka.ends(topic)
        except KafkaException as exception:
            if not error_of(exception).retriable():
                raise
            continue  # a partition has another leader by now
        if {partition: committed.get(partition, (0, ""))[0] for partition in ends} == ends:
            return
        time.sleep(0.5)
    raise AssertionError(f"{group} does not come to the end: {kafka.committed(group, topic)} of {kafka.ends(topic)}")


def _trace_id(number: int) -> bytes:
    return random.Random(number).randbytes(16)


def _message(trace_id: bytes, at: int) -> bytes:
    """Return a span of a trace; the last one of every fifth trace tells that it has failed."""
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=trace_id,
        span_id=(at + 1).to_bytes(8, "big"),
        name=f"span {at}",
        start_time_unix_nano=time.time_ns(),
        end_time_unix_nano=time.time_ns() + 1,
    )
    if at == _SPANS - 1 and trace_id[0] % 5 == 0:
        request.resource_spans[0].scope_spans[0].spans[0].status.code = 2  # type: ignore[assignment]
    return request.SerializeToString()


def main() -> int:
    """Run it by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how often a gateway is killed")
    parser.add_argument("--seed", type=int, default=1, help="of the times")
    parser.add_argument("--rate", type=int, default=100, help="traces a second")
    parser.add_argument("--exactly-once", action="store_true", help="in transactions")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, 3), help="of three, one is killed half-way")
    parser.add_argument("--stall", type=float, default=0.0, help="seconds for which a broker hangs half-way")
    parser.add_argument("--named", action="store_true", help="with a group_instance_id, as a StatefulSet has them")
    parser.add_argument("--keep", type=Path, help="a folder for the logs")
    given = parser.parse_args()
    plan = Plan(
        given.kills,
        given.seed,
        given.exactly_once,
        given.rate,
        kill_broker=given.brokers > 1,
        stall=given.stall,
        named=given.named,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        kafka = Kafka(DEFAULT_ASSETS, Path(temporary) / "kafka", brokers=given.brokers)
        try:
            kafka.start()
            verdict = run(kafka, plan, folder)
        finally:
            kafka.stop()
    print(verdict)
    return 0 if verdict.is_right(exactly_once=plan.exactly_once) else 1


if __name__ == "__main__":
    sys.exit(main())
