"""The numbers of the policies' table, from verdicts alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podtrail.otlp import Decision, PolicyVote, Shadow, Verdict
from podtrail.story import PolicyCost
from podtrail.story.policies import HOUR, Alternative, PolicyRow, PolicyWindow, SamplerPolicy, SamplerView
from podtrail.testing.attempts import START

YES: Decision = "sampled"
NO: Decision = "not_sampled"
TYPES = {SamplerPolicy("traces", name): "t" for name in ("failed", "slow", "some")}
TRIED = SamplerPolicy("traces", "tried", shadow=True)


def verdict(votes: Mapping[str, Decision], *, at: int = START, reason: str = "") -> Verdict:
    policy = next((policy for policy, vote in votes.items() if vote == YES), "")
    return Verdict(b"t" * 16, YES if policy else NO, policy, reason, at, at, 10, votes)


def told(*verdicts: Verdict, now: int = START, types: Mapping[SamplerPolicy, str] = TYPES) -> SamplerView:
    window = PolicyWindow()
    for one in verdicts:
        window.note("traces", one)
    (view,) = window.tell(now, types, {"failed": PolicyCost(2.5, 3), "other.slow": PolicyCost(None, 1)})
    return view


def row(view: SamplerView, policy: str) -> PolicyRow:
    return next(one for one in view.policies if one.policy == policy)


def test_votes_decisions_and_what_would_be_lost_without_a_policy() -> None:
    view = told(
        verdict({"failed": YES, "slow": NO, "some": NO}),
        verdict({"failed": YES, "slow": YES, "some": NO}),
        verdict({"failed": NO, "slow": YES, "some": NO}, at=START + 5),
        verdict({"failed": NO, "slow": NO, "some": NO}),
    )
    assert (view.traces, view.kept, view.spans, view.kept_spans, view.nothing, view.nothing_spans) == (
        4,
        3,
        40,
        30,
        1,
        10,
    )
    assert [(one.policy, one.voted_yes, one.decided, one.only_it, one.spans) for one in view.policies] == [
        ("failed", 2, 2, 1, 20),
        ("slow", 2, 1, 1, 10),
        ("some", 0, 0, 0, 0),
    ]
    assert (row(view, "slow").last_yes_unix_nano, row(view, "some").last_yes_unix_nano) == (START + 5, None)
    assert (row(view, "failed").microseconds, row(view, "failed").errors, row(view, "slow").errors) == (2.5, 3, 1)


def test_where_the_first_match_ends_the_asking_nobody_knows_what_only_it_said() -> None:
    view = told(verdict({"failed": YES}), verdict({"failed": NO, "slow": NO, "some": YES}))
    assert (row(view, "failed").only_it, row(view, "some").only_it) == (None, 1)


def test_a_policy_that_failed_has_no_vote_and_counts_as_no() -> None:
    view = told(verdict({"failed": YES, "some": NO}))
    assert row(view, "failed").only_it == 1


class Tried(NamedTuple):
    """An explainer of verdicts with shadows."""

    shadow: Shadow

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        return [PolicyVote(policy, "t", vote, "") for policy, vote in verdict.votes.items()]


def tried(one: Verdict, shadow: Shadow) -> Verdict:
    one.explainer = Tried(shadow)
    return one


def test_a_shadow_is_told_apart_and_says_what_it_would_have_kept() -> None:
    view = told(
        tried(verdict({"failed": NO, "slow": NO, "some": NO}), Shadow({"tried": YES})),
        tried(verdict({"failed": YES, "slow": NO, "some": NO}), Shadow({"tried": YES})),
        types={**TYPES, TRIED: "latency"},
    )
    shadow = row(view, "tried")
    assert (shadow.type, shadow.shadow, shadow.voted_yes, shadow.decided) == ("latency", True, 2, 0)
    assert (shadow.would_keep, shadow.spans) == (1, 10)
    assert row(view, "failed").only_it == 1


def test_an_alternative_list_says_what_it_would_keep_gain_and_lose_even_under_the_same_names() -> None:
    view = told(
        tried(verdict({"failed": NO}), Shadow({}, YES, "failed", "", {"failed": YES})),
        tried(verdict({"failed": YES}), Shadow({}, NO, "", "", {"failed": NO})),
        tried(verdict({"failed": YES}), Shadow({}, YES, "failed", "", {"failed": YES})),
    )
    assert view.alternative == Alternative(kept=2, gained=1, lost=1)
    assert [(one.shadow, one.voted_yes) for one in view.policies if one.policy == "failed"] == [(False, 2), (True, 2)]


def test_a_policy_that_another_covers_is_named() -> None:
    view = told(verdict({"failed": YES, "slow": YES}), verdict({"failed": YES, "slow": NO}))
    assert (row(view, "slow").covered_by, row(view, "failed").covered_by) == ("failed", "")


def test_evicted_traces_are_counted_apart() -> None:
    view = told(verdict({}, reason="evicted before its decision: num_traces"), verdict({"failed": NO}))
    assert (view.nothing, view.evicted) == (2, 1)


def test_what_is_older_than_an_hour_is_forgotten_but_for_the_last_yes() -> None:
    window = PolicyWindow()
    window.note("traces", verdict({"failed": YES}))
    for n in range(1, 40):
        window.note("traces", verdict({"failed": NO}, at=START + n * HOUR // 12))
    (view,) = window.tell(START + 39 * HOUR // 12, TYPES, {})
    assert view.kept == 0
    assert 12 <= view.traces <= 13
    assert row(view, "failed").last_yes_unix_nano == START


def test_rows_of_votes_are_bounded() -> None:
    window = PolicyWindow()
    for n in range(2_100):
        window.note("traces", verdict({f"policy-{n}": YES}))
    (view,) = window.tell(START, {}, {})
    assert view.kept == 2_100
    assert len(view.policies) <= 2_048
