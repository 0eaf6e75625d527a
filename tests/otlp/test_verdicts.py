"""What a verdict says of itself, and the line it makes."""

from collections.abc import Sequence

from podtrail.otlp import PolicyVote, Shadow, Verdict
from podtrail.otlp.decisions import decision_line


class Knowing:
    """Explains a verdict."""

    shadow = Shadow({"tried": "sampled"})

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        return [PolicyVote(verdict.policy, "latency", verdict.decision, "it was slow")]


def verdict(explainer: Knowing | None) -> Verdict:
    """Return a verdict."""
    return Verdict(bytes(15) + b"\1", "sampled", "slow", "", 2, 1, 3, {"slow": "sampled"}, explainer=explainer)


def test_a_verdict_is_explained_by_who_gave_it() -> None:
    assert verdict(Knowing()).explained() == [PolicyVote("slow", "latency", "sampled", "it was slow")]


def test_without_anybody_to_ask_the_votes_are_all_it_says() -> None:
    assert verdict(None).explained() == [PolicyVote("slow", "", "sampled", "")]
    assert verdict(None).shadow is None


def test_equal_verdicts_are_equal_whoever_explains_them() -> None:
    assert verdict(Knowing()) == verdict(None)


def test_a_line_shows_what_shadows_said_where_there_are_any() -> None:
    assert "shadow" not in decision_line(verdict(None))
    assert decision_line(verdict(Knowing()))["shadow"] == {"votes": {"tried": "sampled"}}
