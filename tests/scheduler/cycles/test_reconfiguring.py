"""Another configuration while Pods are scheduled: the next attempt has it, attempts under way keep theirs."""

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from podtrail_instrumentation import provider_around
from podtrail_scheduler.cycles.attempt_spans import ConfigurationInForce, change_that_made
from podtrail_scheduler.cycles.scheduler import UNTOLD
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult, Plugin
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.registry import default_profile

from tests.scheduler.bench import Bench, pod

CHANGE = {"tracing.k8s.io/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class No:
    """Says no to every node."""

    name = "No"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return unschedulable("no")

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("not yet") if pod.name == "held" else None


class Waits:
    """Has every Pod wait for permission, and knows those that it let go on."""

    name = "Waits"

    def __init__(self) -> None:
        self.bound: list[str] = []

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 5 * SECOND)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.bound.append(pod.name)


def reconfigure(bench: Bench, *plugins: Plugin, configured: ConfigurationInForce = UNTOLD) -> None:
    bench.scheduler.reconfigure([(default_profile(bench.handle, plugins), bench.handle)], configured)


def test_who_was_refused_by_a_plugin_that_is_gone_is_tried_again() -> None:
    bench = Bench(No())
    assert bench.attempt(pod()).refused_by == {"No"}
    reconfigure(bench)
    bench.step_until(lambda: len(bench.records) > 1, seconds=12)
    assert (bench.records[1].result, bench.records[1].number) == ("Success", 2)


def test_who_was_held_back_by_a_plugin_that_is_gone_is_tried() -> None:
    bench = Bench(No())
    bench.create(pod("held"))
    bench.step_until(lambda: bench.scheduler.queue.lengths()["gated"] == 1)
    reconfigure(bench)
    bench.step_until(lambda: bool(bench.records), seconds=12)
    assert bench.records[0].result == "Success"


def test_a_new_plugin_has_its_say_from_the_next_attempt_on() -> None:
    bench = Bench()
    assert bench.attempt(pod("a")).result == "Success"
    reconfigure(bench, No())
    assert bench.attempt(pod("b")).refused_by == {"No"}
    bench.create(pod("held"))
    bench.step_until(lambda: bench.scheduler.queue.lengths()["gated"] == 1)


def test_an_attempt_under_way_ends_with_what_it_began_with() -> None:
    waits = Waits()
    bench = Bench(waits)
    bench.create(pod())
    bench.step_until(lambda: bool(bench.handle.waiting))
    reconfigure(bench, No())
    bench.handle.waiting["a"].allow("Waits")
    bench.step_until(lambda: bool(bench.records))
    assert (bench.records[0].result, waits.bound) == ("Success", ["a"])


def test_an_attempt_that_fails_after_the_change_is_tried_again_with_it() -> None:
    waits = Waits()
    bench = Bench(waits)
    bench.create(pod())
    bench.step_until(lambda: bool(bench.handle.waiting))
    reconfigure(bench)
    bench.handle.waiting["a"].reject("Waits", "no")
    bench.step_until(lambda: len(bench.records) > 1, seconds=12)
    assert [record.result for record in bench.records] == ["Unschedulable", "Success"]


def roots(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == "SchedulePod"]


def test_attempts_say_which_configuration_they_were_made_with_and_who_made_it() -> None:
    exporter = InMemorySpanExporter()
    provider = provider_around(SimpleSpanProcessor(exporter), Resource({}))
    bench = Bench(provider=provider, configured=ConfigurationInForce("aaa"))
    bench.attempt(pod("a", annotations={"tracing.k8s.io/traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}))
    reconfigure(bench, configured=ConfigurationInForce("bbb", change_that_made(CHANGE)))
    bench.attempt(pod("b", annotations={"tracing.k8s.io/traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}))
    bench.attempt(pod("c"))

    before, after, alone = roots(exporter)
    told = [(span.attributes or {})["scheduler.config.generation"] for span in (before, after, alone)]
    assert told == ["aaa", "bbb", "bbb"]
    assert [f"{link.context.span_id:016x}" for link in before.links] == ["2" * 16]
    assert [f"{link.context.span_id:016x}" for link in after.links] == ["2" * 16, "b7ad6b7169203331"]
    [link] = alone.links
    assert dict(link.attributes or {}) == {
        "podtrail.link.type": "configuration",
        "podtrail.link.source": "configuration",
        "podtrail.link.trusted": False,
    }


def test_who_is_not_asked_says_nothing_of_the_configuration() -> None:
    exporter = InMemorySpanExporter()
    bench = Bench(provider=provider_around(SimpleSpanProcessor(exporter), Resource({})))
    bench.attempt(pod())
    assert "scheduler.config.generation" not in (roots(exporter)[0].attributes or {})


def test_a_change_that_names_no_span_is_no_link() -> None:
    assert change_that_made({}) == ()
    assert change_that_made({"tracing.k8s.io/traceparent": CHANGE["tracing.k8s.io/traceparent"].upper()}) == ()
