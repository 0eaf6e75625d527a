"""Laws of replay: how arrivals are cut into requests, and how often time is told, changes nothing."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.config import Document
from podtrail.otlp import Batch, Group, Intake, frame, split
from podtrail.otlp.decisions import decision_line
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer
from podtrail.testing.attempts import START, MadeAttempt
from tests.sizes import large

SECOND = 1_000_000_000
CONFIG = {
    "receivers": {"otlp": {"protocols": {"grpc": {}}}},
    "processors": {
        "tail_sampling": {
            "decision_wait": "10s",
            "decision_wait_after_root_received": "3s",
            "decision_idle": "4s",
            "decision_cache": {"sampled_cache_size": 3, "non_sampled_cache_size": 3},
            "linked_traces": {"keep": True, "grace_period": "20s"},
            "policies": [
                {"name": "news", "type": "new_reason", "new_reason": {"forget_after": "30s"}},
                {"name": "recovered", "type": "recovered", "recovered": {"min_failures": 2}},
                {"name": "few", "type": "rate_limiting", "rate_limiting": {"spans_per_second": 2}},
                {"name": "target", "type": "target_rate", "target_rate": {"traces_per_second": 0.1}},
            ],
        },
        "link_stitching": {},
    },
    "exporters": {"debug": {}},
    "service": {
        "pipelines": {
            "traces": {
                "receivers": ["otlp"],
                "processors": ["tail_sampling", "link_stitching"],
                "exporters": ["debug"],
            }
        }
    },
}
SETTINGS = read_settings(Document.from_mapping(CONFIG))
Arrivals = Sequence[tuple[int, Sequence[Group]]]

ATTEMPT = st.builds(
    MadeAttempt,
    uid=st.sampled_from([f"1f3c0a52-0000-4000-8000-00000000000{n}" for n in range(3)]),
    number=st.integers(1, 4),
    result=st.sampled_from(["Success", "Unschedulable", "Error"]),
    stitched=st.just(value=False),
)
STEP = st.tuples(st.sampled_from([0, 1, SECOND, 3 * SECOND, 11 * SECOND]), ATTEMPT, st.integers(0, 5))


@st.composite
def arrivals(draw: st.DrawFn) -> Arrivals:
    """Attempts in the order of time; of some the first spans come with the next request, or late."""
    now, made, rest = START, [], list[Group]()
    for gap, attempt, cut in draw(st.lists(STEP, min_size=1, max_size=12)):
        now += gap
        (group,) = attempt.groups()
        spans = split(group.spans)
        first, later = spans[:cut], spans[cut:]
        now_here = [*rest, *([group._replace(spans=frame(later), span_count=len(later))] if later else [])]
        rest = [group._replace(spans=frame(first), span_count=len(first))] if first else []
        if now_here:
            made.append((now, now_here))
    return [*made, (now + SECOND, rest)] if rest else made


def run(of: Arrivals) -> tuple[list[str], list[bytes]]:
    decisions: list[str] = []
    spans: list[bytes] = []

    def sink(_pipeline: str, batch: Batch) -> None:
        decisions.extend(json.dumps(decision_line(verdict)) for verdict in batch.verdicts)
        spans.extend(raw for group in batch.groups for raw in split(group.spans))

    replayer = Replayer(SETTINGS, sink)
    for now, groups in of:
        replayer.add(now, Intake(groups, 0, ""))
    replayer.finish()
    return decisions, spans


@settings(max_examples=large(25, 100))
@given(arrivals())
def test_a_request_cut_into_many_of_the_same_time_decides_the_same(of: Arrivals) -> None:
    assert run(of) == run([(now, [group]) for now, groups in of for group in groups])


@settings(max_examples=large(25, 100))
@given(arrivals(), st.lists(st.integers(0, 60 * SECOND), max_size=20))
def test_time_told_more_often_decides_the_same(of: Arrivals, ticks: list[int]) -> None:
    last = of[-1][0]
    between: Arrivals = [(now, ()) for tick in ticks if (now := START + tick) <= last]
    told = sorted([*of, *between], key=lambda arrival: arrival[0])
    assert run(of) == run(told)
