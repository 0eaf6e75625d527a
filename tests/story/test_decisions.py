"""The ring of decisions: what it holds, what it can still explain, and how much it may take."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import Batch, Decision, Group, PolicyVote, Verdict, encode_span, frame
from podtrail.story import DecisionRing, Library, selector, votes_of
from podtrail.story.decisions import DecidedPod
from podtrail.testing.attempts import START, MadeAttempt

SECOND = 1_000_000_000


class Says:
    """Explains every vote with the spans that the verdict has."""

    shadow = None

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        spans = sum(group.span_count for group in verdict.groups)
        return [PolicyVote(policy, "t", vote, f"{spans} spans") for policy, vote in verdict.votes.items()]


def verdict(n: int, size: int = 1_000, decision: Decision = "sampled", policy: str = "failed") -> Verdict:
    trace_id = n.to_bytes(16, "big")
    span = encode_span(trace_id=trace_id, span_id=b"s" * 8, name=f"root {n}", trace_state="x" * size, start=1, end=2)
    group = Group(b"", b"", trace_id, frame([span]), 1)
    votes: dict[str, Decision] = {"failed": decision, "slow": "not_sampled"}
    at = START + n * SECOND
    return Verdict(trace_id, decision, policy, "because", at, at - SECOND, 1, votes, [group], Says())


def test_the_latest_decisions_are_explained_and_older_ones_keep_their_short_form() -> None:
    ring = DecisionRing(40_000)
    for n in range(1, 31):
        ring.note("traces", verdict(n))
    (latest,), (older,) = ring.find((30).to_bytes(16, "big")), ring.find((12).to_bytes(16, "big"))
    assert [vote.why for vote in votes_of(latest)] == ["1 spans", "1 spans"]
    assert [(vote.policy, vote.decision, vote.why) for vote in votes_of(older)] == [
        ("failed", "sampled", ""),
        ("slow", "not_sampled", ""),
    ]
    assert (older.title, older.reason, older.verdict) == ("root 12", "because", None)
    assert ring.whole_since is not None
    assert ring.since is not None
    assert START < ring.since < ring.whole_since < START + 30 * SECOND
    assert ring.forgotten == 30 - len(ring) > 0


def test_one_giant_trace_does_not_push_out_the_others() -> None:
    ring = DecisionRing(100_000)
    for n in range(1, 6):
        ring.note("traces", verdict(n))
    ring.note("traces", verdict(6, size=80_000))
    ring.note("traces", verdict(7))
    assert [entry.verdict is not None for entry in ring.latest()] == [True, False, True, True, True, True, True]


def test_a_trace_decided_twice_has_both_decisions_the_latest_first() -> None:
    ring = DecisionRing(100_000)
    ring.note("traces", verdict(1, decision="not_sampled", policy=""))
    ring.note("traces", verdict(1))
    assert [entry.decision for entry in ring.find((1).to_bytes(16, "big"))] == ["sampled", "not_sampled"]
    assert ring.find(b"?" * 16) == []


def test_late_spans_that_followed_a_decision_stand_behind_it() -> None:
    ring = DecisionRing(100_000)
    decided = verdict(1, decision="not_sampled", policy="")
    ring.note("traces", decided)
    ring.note("traces", replace(decided, late=True, votes={}, reason="late: it was decided without its root"))
    first, second = ring.find(decided.trace_id)
    assert (first.reason, second.reason) == ("because", "late: it was decided without its root")
    assert [vote.policy for vote in votes_of(first)] == ["failed", "slow"]
    ring.note("traces", replace(decided, late=True, votes={}, decision="sampled", reason="late error"))
    assert ring.find(decided.trace_id)[0].reason == "late error"


def test_pages_follow_each_other_while_new_decisions_come() -> None:
    ring = DecisionRing(1_000_000)
    for n in range(1, 11):
        ring.note("traces", verdict(n))
    first, matching = ring.select(lambda _: True, 4)
    ring.note("traces", verdict(11))
    second, _ = ring.select(lambda _: True, 4, before=first[-1].seq)
    assert matching == 10
    assert [entry.seq for entry in (*first, *second)] == [10, 9, 8, 7, 6, 5, 4, 3]
    assert [entry.seq for entry in ring.latest(before=3)] == [2, 1]


def test_a_filter_finds_by_policy_that_said_yes_decision_name_and_id() -> None:
    ring = DecisionRing(1_000_000)
    ring.note("traces", verdict(1), DecidedPod("uid-1", "default", "web-0"))
    ring.note("traces", verdict(2, decision="dropped", policy="drop-it"))
    found = {
        asked: [entry.seq for entry in ring.select(selector(*asked), 9)[0]]
        for asked in (
            ("failed", "", ""),
            ("slow", "", ""),
            ("", "dropped", ""),
            ("", "", "fault/web"),
            ("", "", "0" * 31),
        )
    }
    assert list(found.values()) == [[1], [], [2], [1], [2, 1]]


def test_a_filter_finds_by_the_roots_name_whether_the_spans_are_still_held_or_not() -> None:
    ring = DecisionRing(200_000)
    ring.note("traces", verdict(1))
    ring.note("traces", verdict(2, size=60_000))
    ring.note("traces", MadeAttempt().verdict(), DecidedPod("uid-1", "default", "web-0"))
    assert [entry.verdict is not None for entry in ring.latest()] == [True, False, True]

    def found(q: str) -> list[int]:
        return [entry.seq for entry in ring.select(selector(q=q), 9)[0]]

    assert found("ROOT") == [2, 1]
    assert found("root 1") == [1]
    assert found("SchedulePod") == [3]
    assert found("DELETE") == []


Step = st.tuples(st.integers(1, 8), st.sampled_from([0, 100, 3_000, 9_000, 50_000]), st.booleans())


@settings(max_examples=60)
@given(st.lists(Step, max_size=80), st.integers(1_000, 60_000))
def test_it_never_holds_more_than_its_bytes_and_never_loses_count(
    steps: list[tuple[int, int, bool]], most: int
) -> None:
    ring = DecisionRing(most)
    for n, size, owned in steps:
        one = verdict(n, size)
        if not size:
            one.groups = ()
        ring.note("traces", one, DecidedPod("k", "ns", "n") if owned else None)
        entries = list(ring.latest())
        assert ring.size <= most
        assert ring.size == sum(entry.size for entry in entries)
        assert len(ring) == len(entries) == ring.taken - ring.forgotten
        assert [entry.seq for entry in entries] == list(range(ring.taken, ring.forgotten, -1))
        assert {entry.seq for n in range(1, 9) for entry in ring.find(n.to_bytes(16, "big"))} == {
            e.seq for e in entries
        }
        whole = [entry.decided_at for entry in entries if entry.verdict is not None]
        assert ring.whole_since == (whole[-1] if whole else None)


def test_a_decision_knows_the_pod_whose_attempt_it_was_about() -> None:
    library = Library()
    attempt = MadeAttempt()
    library.decide("traces", Batch((), START, [attempt.verdict("not_sampled", "", "no policy said yes")]))
    (told,) = library.decisions_about(attempt.trace_id)
    assert (told.pod_key, told.namespace, told.name, told.attempt) == (attempt.uid, "default", "web-0", 1)
    assert (told.decision, told.explained, told.title) == ("not_sampled", True, "")
