import json
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import PolicyVote, Shadow, Verdict
from podtrail.otlp.decisions import decision_line
from podtrail.story import Library, plain
from podtrail.story.decision_lines import read_decision
from podtrail.testing.attempts import START, MadeAttempt, no_room


def test_a_decision_that_was_written_tells_the_same_as_the_one_that_was_made() -> None:
    attempt = no_room()
    made = attempt.verdict("not_sampled", "", "no policy said yes")
    made.votes = {"failed": "not_sampled"}
    verdict, root, _ = read_decision(json.dumps(decision_line(made)).encode())
    assert (verdict.trace_id, verdict.decision, verdict.reason, verdict.spans) == (
        made.trace_id,
        "not_sampled",
        made.reason,
        6,
    )
    assert (verdict.decided_at, verdict.arrived, verdict.votes) == (made.decided_at, made.arrived, made.votes)
    assert root is not None
    library = Library()
    library.read(verdict, root)
    (pod,) = library.find("web-0", "default")
    told = library.why_pod(pod, START, live=False)
    assert told is not None
    assert any("31  NodeAffinity" in plain(line) for line in told.lines)


class Tried(NamedTuple):
    """An explainer of verdicts with shadows."""

    shadow: Shadow

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        return [PolicyVote(policy, "", vote, "") for policy, vote in verdict.votes.items()]


def test_shadows_and_dry_runs_are_read_as_well() -> None:
    made = no_room().verdict("not_sampled", "", "no policy said yes")
    made.dry_run = True
    made.explainer = Tried(Shadow({"tried": "sampled"}, "sampled", "other", "9 ms", {"other": "sampled"}))
    verdict, _, _ = read_decision(json.dumps(decision_line(made)).encode())
    assert (verdict.dry_run, verdict.shadow) == (True, made.shadow)
    library = Library()
    library.read(verdict, None)
    told = library.why_trace(made.trace_id)
    assert told is not None
    lines = list(map(plain, told.lines))
    assert "It is a dry run" in lines[0]
    assert "  tried  yes  (shadow)" in [line.rstrip() for line in lines]


def test_a_decision_about_no_attempt_has_none() -> None:
    line = decision_line(MadeAttempt().verdict())
    del line["rootSpanId"]
    assert read_decision(json.dumps(line).encode()).attempt is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "Expecting"),
        (b"[]", "not an object"),
        (b"{}", "no traceId"),
        (b'{"traceId": "zz"}', "no traceId"),
        (json.dumps({"traceId": "0" * 32}).encode(), "decision is none of"),
        (json.dumps({"traceId": "0" * 32, "decision": "sampled", "votes": {"a": []}}).encode(), "decision is none of"),
    ],
)
def test_a_line_that_is_no_decision_says_why(raw: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_decision(raw)


Anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(decision_line(MadeAttempt().verdict()))), Anything))
def test_whatever_a_line_says_is_read_or_refused(changes: dict[str, object]) -> None:
    line = {**decision_line(MadeAttempt().verdict()), **changes}
    try:
        verdict, attempt, _ = read_decision(json.dumps(line).encode())
    except ValueError:
        return
    library = Library()
    library.read(verdict, attempt)
    assert library.why_trace(verdict.trace_id) is not None
