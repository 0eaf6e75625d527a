"""`podtrail run` in front of five gateways that are killed, stand still, and come back, while traces are under way."""

import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.forks import PipedFork, environment
from tests.reliability.conftest import Process, Sender, Start, configuration
from tests.service.toolbox import until

GATEWAY = Path(__file__).with_name("appending_gateway.py")
ROUNDS, EACH, PARTS = 60, 10, 4
KILLED, STALLED = 0, 1


class Gateway:
    """A gateway that can be killed and started again on its port."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [str(GATEWAY), str(self.port), str(self.path)]
        self.process = PipedFork(command, self.path.parent, environment({}))
        self.port = int(self.process.stdout.readline())

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.kill()
        self.process.wait(120)
        self.process.stdout.close()
        self.process.stderr.close()

    def took(self) -> Counter[tuple[str, str]]:
        """Return how often each span was taken: trace id, span id."""
        lines = self.path.read_text(encoding="ascii").splitlines()
        return Counter((trace_id, span_id) for trace_id, span_id in map(str.split, lines))


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[list[Gateway]]:
    """Five of them."""
    running = [Gateway(tmp_path / f"gateway-{number}") for number in range(5)]
    yield running
    for each in running:
        each.kill()


def part(number: int, at: int) -> ExportTraceServiceRequest:
    """One span of trace `number`."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    identity = ((number + 1) * 0x9E3779B97F4A7C15 % 2**64 << 64 | number).to_bytes(16, "big")
    span_id = (number * PARTS + at + 1).to_bytes(8, "big")
    times = {"start_time_unix_nano": 1, "end_time_unix_nano": 2}
    scope.spans.add(trace_id=identity, span_id=span_id, name="SchedulePod", **times)
    return request


def test_each_trace_is_whole_on_one_gateway_but_where_that_failed_and_nothing_is_lost(
    start: Start, sender: Callable[[Process], Sender], gateways: list[Gateway]
) -> None:
    quick = {"initial_interval": "50ms", "max_interval": "200ms"}
    exporter = {
        "protocol": {"otlp": {"tls": {"insecure": True}, "timeout": "500ms", "retry_on_failure": quick}},
        "resolver": {"static": {"hostnames": [f"127.0.0.1:{each.port}" for each in gateways]}},
        "retry_on_failure": quick,
    }
    agent = start(configuration({"load_balancing": exporter})).ready()
    scheduler = sender(agent)

    def goes_on_once_missed() -> None:
        agent.line(f"127.0.0.1:{gateways[STALLED].port} does not answer, the next on the ring gets its traces")
        gateways[STALLED].tell(signal.SIGCONT)

    events: dict[int, Callable[[], None]] = {
        15: gateways[KILLED].kill,
        20: lambda: gateways[STALLED].tell(signal.SIGSTOP),
        30: gateways[KILLED].start,
        40: goes_on_once_missed,
    }
    for number in range(ROUNDS + PARTS - 1):
        if number in events:
            events[number]()
        # The parts of a trace come in rounds one after the other, each in a request of its own.
        for at in range(PARTS):
            if 0 <= number - at < ROUNDS:
                scheduler.send_again_until_taken([part((number - at) * EACH + n, at) for n in range(EACH)])

    sent = {f"{int(span, 16):016x}" for span in (span_id.hex() for span_id in scheduler.acknowledged)}
    assert len(sent) == ROUNDS * EACH * PARTS

    def arrived() -> set[str]:
        return {span_id for each in gateways for _, span_id in each.took()}

    until(lambda: arrived() == sent)
    where: defaultdict[str, set[int]] = defaultdict(set)
    for number, each in enumerate(gateways):
        for trace_id, _ in each.took():
            where[trace_id].add(number)
    failed = {KILLED, STALLED}
    parted = [places for places in where.values() if len(places) > 1]
    assert all(places & failed for places in parted)
    assert len(parted) < len(where) / 4
    # Only who failed, and those who took over from it, may have a span twice.
    times = sum((each.took() for each in gateways), Counter[tuple[str, str]]())
    assert all(where[trace_id] & failed for (trace_id, _), count in times.items() if count > 1)
    agent.line(f"127.0.0.1:{gateways[KILLED].port} does not answer, the next on the ring gets its traces")
    agent.line(f"127.0.0.1:{gateways[KILLED].port} answers again")
    agent.tell(signal.SIGTERM)
    assert agent.end() == 0
    assert "dropped" not in agent.log
