"""What waits to be exported: attempts leave or are lost as a whole, within bounds."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import Tracer, set_span_in_context
from podtrail_instrumentation import Span, provider_around, start
from podtrail_instrumentation.export_queue import WaitingSpans
from podtrail_instrumentation.recorded import RecordedSpan


class Keeping(SpanProcessor):
    """What the batch processor does, without its thread."""

    def __init__(self, limit: int) -> None:
        self.waiting = WaitingSpans(limit)
        self.lost = 0

    def on_start(self, span: object, parent_context: Context | None = None) -> None:
        if isinstance(span, RecordedSpan) and span.parent_span is None:
            self.waiting.begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.lost += self.waiting.add(span, span.context.trace_id)

    def names(self, limit: int = 1000) -> list[str]:
        return [span.name for span in self.waiting.take(limit)]


def tracing(limit: int) -> tuple[Keeping, Tracer]:
    keeping = Keeping(limit)
    return keeping, provider_around(keeping, Resource({})).get_tracer("test")


def attempt(tracer: Tracer, name: str) -> Span:
    return start(name, clock=lambda: 1, tracer=tracer)


def step(root: Span, name: str) -> None:
    root.start(name).end(None)


def whole(tracer: Tracer, name: str, steps: int) -> None:
    root = attempt(tracer, name)
    for number in range(steps):
        step(root, f"{name}.{number}")
    root.end(None)


def test_spans_wait_for_their_root_which_is_the_last() -> None:
    keeping, tracer = tracing(100)
    root = attempt(tracer, "root")
    step(root, "filter")
    assert (keeping.names(), keeping.waiting.count) == ([], 1)
    whole(tracer, "another", 0)
    assert keeping.names() == ["another"]
    root.end(None)
    assert keeping.names() == ["filter", "root"]


def test_what_a_plugin_starts_with_the_sdk_belongs_to_its_attempt() -> None:
    keeping, tracer = tracing(100)
    root = attempt(tracer, "root")
    assert root.context is not None
    tracer.start_span("a plugin's own", root.context).end()
    assert keeping.names() == []
    root.end(None)
    assert keeping.names() == ["a plugin's own", "root"]


def test_an_attempt_that_does_not_fit_is_lost_as_a_whole_and_makes_room() -> None:
    keeping, tracer = tracing(16)  # two places are kept for attempts that have begun to leave
    whole(tracer, "first", 9)
    whole(tracer, "second", 9)
    assert (keeping.lost, keeping.waiting.ready, keeping.waiting.count) == (10, 10, 10)
    whole(tracer, "third", 3)
    assert keeping.lost == 10
    assert [name for name in keeping.names() if "." not in name] == ["first", "third"]


def test_a_long_attempt_is_seen_after_a_period_and_its_rest_has_room_in_a_full_queue() -> None:
    keeping, tracer = tracing(8)
    root = attempt(tracer, "long")
    step(root, "schedulingCycle")
    keeping.waiting.end_period()
    assert keeping.names() == []
    keeping.waiting.end_period()
    assert keeping.names() == ["schedulingCycle"]
    for number in range(10):
        whole(tracer, f"other{number}", 0)
    assert keeping.lost == 3
    root.end(None)
    assert keeping.lost == 3
    assert keeping.names()[-1] == "long"


def test_what_ends_after_its_root_shares_its_fate() -> None:
    keeping, tracer = tracing(8)
    kept = attempt(tracer, "kept")
    late, later = kept.start("late"), attempt(tracer, "lost")
    kept.end(None)
    for number in range(6):
        whole(tracer, f"other{number}", 0)
    lost = later.start("of the lost")
    later.end(None)
    assert keeping.lost == 1
    lost.end(None)
    assert keeping.lost == 2
    late.end(None)
    assert keeping.names()[-1] == "late"


def test_an_attempt_larger_than_a_batch_is_divided_only_then() -> None:
    keeping, tracer = tracing(1000)
    for name in ("a", "b", "c"):
        whole(tracer, name, 2)
    assert [len(keeping.waiting.take(7)) for _ in range(3)] == [6, 3, 0]
    whole(tracer, "large", 9)
    assert [len(keeping.waiting.take(4)) for _ in range(4)] == [4, 4, 2, 0]


def test_a_span_whose_trace_began_elsewhere_is_alone() -> None:
    keeping, tracer = tracing(100)
    elsewhere = attempt(provider_around(Keeping(1), Resource({})).get_tracer("test"), "elsewhere")
    context = elsewhere.context
    assert context is not None
    tracer.start_span("served", set_span_in_context(tracer.start_span("received", context), context)).end()
    assert keeping.names() == ["served"]


STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["step", "step", "end", "take", "period"])), max_size=80)


@given(STEPS, st.integers(1, 20))
def test_nothing_is_unaccounted_for_nor_beyond_the_bound_and_attempts_stay_whole(
    steps: list[tuple[int, str]], limit: int
) -> None:
    keeping, tracer = tracing(limit)
    under_way: dict[int, Span] = {}
    ended: defaultdict[int, int] = defaultdict(int)
    left: defaultdict[int, int] = defaultdict(int)
    periods, over = 0, set()
    for which, what in steps:
        if what == "period":
            keeping.waiting.end_period()
            periods += 1
        elif what == "take":
            for span in keeping.waiting.take(7):
                assert span.context is not None
                left[span.context.trace_id] += 1
        else:
            root = under_way.get(which) or under_way.setdefault(which, attempt(tracer, str(which)))
            trace_id = root.span_context.trace_id
            ended[trace_id] += 1
            if what == "step":
                step(root, "step")
            else:
                under_way.pop(which).end(None)
                over.add(trace_id)
        assert keeping.waiting.count <= limit
        assert sum(ended.values()) == keeping.waiting.count + sum(left.values()) + keeping.lost
    for span in keeping.waiting.take(1000):
        assert span.context is not None
        left[span.context.trace_id] += 1
    if periods < 2:
        assert all(left[trace_id] in (0, ended[trace_id]) for trace_id in over)
