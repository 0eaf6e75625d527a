"""Undecided traces fall due in the order of their times, whatever brings these nearer or puts them off."""

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.evidence.evidence import Header
from podtrail_processors.tail_sampling.holding.due_queue import DueQueue
from podtrail_processors.tail_sampling.holding.held_trace import FinalDecision, HeldTrace

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "open", "open", "advance", "touch", "decide", "pass", "move"]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=40,
)
HEADER = Header(b"", b"")


@settings(max_examples=200)
@given(STEPS, st.sampled_from([0, 3]))
def test_what_is_due_comes_out_the_earliest_first_and_nothing_else(
    steps: list[tuple[str, int, int]], idle: int
) -> None:
    queue, now, traces = DueQueue(idle), 100, list[HeldTrace]()

    def due(trace: HeldTrace) -> int:
        return min(trace.due, trace.last + idle) if idle else trace.due

    def waiting() -> list[HeldTrace]:
        return [trace for trace in traces if trace.state is None]

    for step, which, amount in steps:
        chosen = waiting()[which % len(waiting())] if waiting() else None
        if step == "open":
            traces.append(HeldTrace(bytes([len(traces)]) * 16, HEADER, now, now + amount, now))
            queue.add(traces[-1])
            assert queue.last_due >= traces[-1].due
        elif step == "advance" and chosen:
            queue.advance(chosen, now + amount)
        elif step == "touch" and chosen:
            chosen.last = now
        elif step == "decide" and chosen:
            chosen.close(FinalDecision("sampled", now))
        elif step == "move":
            queue, before = DueQueue(idle), queue
            queue.take_over(before)
            assert (before.oldest(), before.deadline()) == (None, None)
        elif step == "pass":
            now += amount
            while (first := queue.due_by(now)) is not None:
                assert due(first) == min(map(due, waiting())) <= now
                first.close(FinalDecision("sampled", now))
        assert queue.deadline() == min(map(due, waiting()), default=None)
        assert (queue.due_by(now) is not None) == any(due(trace) <= now for trace in waiting())
        assert queue.oldest() is (waiting()[0] if waiting() else None)
        assert queue.dues() == [(due(trace), trace) for trace in waiting()]
    assert list(queue) == waiting()
