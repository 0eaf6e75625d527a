import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span
from podtrail_instrumentation import KlogFormatter, Span, log_long, start
from podtrail_instrumentation.steps import go_duration

MILLISECOND = 1_000_000


class Story:
    """A clock that is moved by hand and a log that is a list."""

    def __init__(self) -> None:
        self.time = 1_795_241_094_252 * MILLISECOND  # 2026-11-21 06:04:54.252 UTC
        self.log: list[str] = []

    def root(self, name: str = "Scheduling") -> Span:
        return start(name, {"namespace": "default", "name": "ok2"}, clock=lambda: self.time, log=self.log.append)

    def takes(self, milliseconds: float) -> None:
        self.time += int(milliseconds * MILLISECOND)

    def lines(self) -> list[str]:
        [text] = self.log
        number = text[: text.index(" ")]
        return [line.removeprefix(number).removeprefix(" ") for line in text.splitlines()]


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_long_operation_is_printed_as_utiltrace_prints_it(story: Story) -> None:
    span = story.root()
    story.takes(154.683192)
    span.add_event("Computing predicates done")
    story.takes(0.1)
    span.end(100 * MILLISECOND)
    assert story.lines() == [
        '"Scheduling" namespace:default,name:ok2 (21-Nov-2026 06:04:54.252) (total time: 154ms):',
        '---"Computing predicates done" 154ms (06:04:54.406)',
        "[154.783192ms] [154.783192ms] END",
    ]


def test_every_line_of_a_text_has_the_same_number(story: Story) -> None:
    span = story.root()
    story.takes(200)
    span.end(100 * MILLISECOND)
    [text] = story.log
    assert {line.split("]")[0] for line in text.splitlines()} == {
        f"Trace[{(story.time - 200 * MILLISECOND) & 0x7FFFFFFF}"
    }


def test_an_operation_below_its_threshold_says_nothing(story: Story) -> None:
    span = story.root()
    story.takes(99.9)
    span.end(100 * MILLISECOND)
    assert story.log == []


def test_only_steps_of_at_least_their_share_are_printed(story: Story) -> None:
    span = story.root()
    for name, milliseconds in (("short", 33), ("long", 34)):
        story.takes(milliseconds)
        span.add_event(name)
    story.takes(50)
    span.end(100 * MILLISECOND)  # two steps: a share is a third of the threshold
    assert [line[:10] for line in story.lines()[1:]] == ['---"long" ', "[117ms] [1"]


def test_a_nested_operation_stands_in_brackets(story: Story) -> None:
    span = story.root()
    phase = span.start("filter", {"scheduler.phase": "filter"})
    story.takes(80)
    phase.add_event("Computing predicates done")
    story.takes(10)
    phase.end(50 * MILLISECOND)
    story.takes(30)
    span.end(100 * MILLISECOND)
    assert story.lines()[1:] == [
        '["filter" scheduler.phase:filter 90ms (06:04:54.252)',
        ' ---"Computing predicates done" 80ms (06:04:54.332)]',
        "[120ms] [120ms] END",
    ]


def test_a_nested_operation_below_its_threshold_is_left_out_but_not_what_was_long_in_it(story: Story) -> None:
    span = story.root()
    phase = span.start("filter")
    plugin = phase.start("plugin: Slow")
    story.takes(120)
    plugin.end(20 * MILLISECOND)
    phase.end(500 * MILLISECOND)
    span.end(100 * MILLISECOND)
    assert story.lines()[1] == '["plugin: Slow" 120ms (06:04:54.252)]'


def test_at_verbosity_4_every_step_of_what_was_long_is_printed(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO - 4, "podtrail_instrumentation")
    span = story.root()
    phase = span.start("filter")
    story.takes(1)
    phase.end(500 * MILLISECOND)
    story.takes(1)
    span.add_event("short")
    story.takes(110)
    span.end(100 * MILLISECOND)
    assert [line.split(" ")[0] for line in story.lines()[1:]] == ['["filter"', '---"short"', "[112ms]"]


def test_a_long_part_of_a_short_whole_is_printed_alone(story: Story) -> None:
    span = story.root()
    phase = span.start("bind")
    story.takes(60)
    phase.end(50 * MILLISECOND)
    span.end(100 * MILLISECOND)
    assert story.lines()[0] == '"bind" (21-Nov-2026 06:04:54.252) (total time: 60ms):'


def test_the_log_has_a_klog_head_on_its_first_line_only(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log_long("Trace[1]: one\nTrace[1]: two")
    [record] = caplog.records
    record.created, record.process = 1795241094.407601, 9552
    lines = KlogFormatter().format(record).splitlines()
    assert lines == ["I1121 06:04:54.407601    9552 trace.go:236] Trace[1]: one", "Trace[1]: two"]


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (999, "999ns"),
        (1_500, "1.5µs"),
        (154_683_192, "154.683192ms"),
        (2_000_000_000, "2s"),
        (61_500_000_000, "1m1.5s"),
        (7_200_000_000_000, "2h0m0s"),
    ],
)
def test_durations_are_printed_as_go_prints_them(nanoseconds: int, text: str) -> None:
    assert go_duration(nanoseconds) == text


def test_spans_carry_the_times_of_the_given_clock(
    story: Story, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    began = story.time
    root = start("root", clock=lambda: story.time, tracer=provider.get_tracer("test"), log=story.log.append)
    story.takes(5)
    child = root.start("child", {"a": 1})
    story.takes(5)
    child.add_event("event", {"b": True})
    child.end(0)
    root.end(10**12)
    child_span, root_span = exporter.get_finished_spans()
    assert (root_span.start_time, root_span.end_time) == (began, began + 10 * MILLISECOND)
    assert child_span.start_time == began + 5 * MILLISECOND
    assert child_span.parent == root_span.context
    assert [(event.name, event.timestamp) for event in child_span.events] == [("event", story.time)]


def test_a_failure_becomes_the_status_error(
    story: Story, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    root = start("root", clock=lambda: story.time, tracer=provider.get_tracer("test"))
    root.fail("0/1 nodes are available")
    root.end(10**12)
    [span] = exporter.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "0/1 nodes are available")


def test_the_active_span_is_the_parent_of_what_others_start(
    story: Story, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    tracer = provider.get_tracer("test")
    root = start("root", clock=lambda: story.time, tracer=tracer)
    with root.active():
        tracer.start_span("somebody else's").end()
    root.end(10**12)
    other, root_span = exporter.get_finished_spans()
    assert other.parent == root_span.context
    assert not get_current_span().get_span_context().is_valid


def test_the_trace_number_in_the_log_is_the_end_of_the_trace_id(story: Story, provider: TracerProvider) -> None:
    root = start("root", clock=lambda: story.time, tracer=provider.get_tracer("test"), log=story.log.append)
    assert root.context is not None
    trace_id = get_current_span(root.context).get_span_context().trace_id
    root.end(0)
    assert story.log[0].startswith(f"Trace[{trace_id & 0x7FFFFFFF}]: ")


def test_ending_twice_changes_nothing(story: Story) -> None:
    span = story.root()
    story.takes(200)
    span.end(0)
    story.takes(200)
    span.end(0)
    assert len(story.log) == 1
