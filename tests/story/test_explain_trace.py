from collections.abc import Sequence

import pytest

from podtrail.otlp import Batch, Decision, Link, PolicyVote, Verdict
from podtrail.story import Library, WhyQuestion, answer_query, plain, trace_id
from podtrail.story.decided_links import links_to
from podtrail.testing.attempts import START, MadeAttempt, no_room

PREVIOUS = {"podtrail.link.type": "previous-attempt"}
HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"


class Says:
    """Explains with the same words for all."""

    shadow = None

    def __init__(self, *votes: PolicyVote) -> None:
        self.votes = votes

    def explain(self, _: Verdict) -> Sequence[PolicyVote]:
        return self.votes


VOTES = (
    PolicyVote("failed", "scheduling_result", "sampled", "scheduler.result=Unschedulable"),
    PolicyVote("slow", "slow_attempt", "not_sampled", "SchedulePod took 9 ms, not longer than 1s"),
    PolicyVote("broken", "ottl_condition", None, "it failed"),
    PolicyVote("tried", "latency", "sampled", "9 ms", shadow=True),
)


def explained(batch: Batch, *votes: PolicyVote) -> Batch:
    batch.verdicts[0].explainer = Says(*votes)
    return batch


def library_of(*batches: Batch) -> Library:
    library = Library()
    for batch in batches:
        library.decide("traces", batch)
        library.keep(batch.groups, batch.arrived)
    return library


def lines(library: Library, trace_id: bytes) -> list[str]:
    told = library.why_trace(trace_id)
    assert told is not None
    assert len(told.lines) <= 12
    return list(map(plain, told.lines))


def test_it_says_who_kept_it_each_vote_with_span_and_value_and_what_became_of_linked_traces() -> None:
    first, second = no_room(), no_room(number=2, start=START + 10)
    links = [
        Link(first.trace_id, first.root_id, PREVIOUS),
        Link(b"?" * 16, b"?" * 8, {"podtrail.link.type": "creation"}),
    ]
    third = no_room(number=3, start=START + 20, links=links)
    back = no_room(number=4, start=START + 30, links=[Link(third.trace_id, third.root_id, PREVIOUS)])
    library = library_of(
        first.batch("not_sampled", "", "no policy said yes"),
        second.batch(),
        explained(third.batch(reason="scheduler.result=Unschedulable"), *VOTES),
        back.batch(),
    )
    told = lines(library, third.trace_id)
    one, four = (made.trace_id.hex()[:8] for made in (first, back))
    decided = "6 spans, decided at 14:13:20 UTC in traces, 9 ms after its first span came."
    assert told == [
        f"Trace {third.trace_id.hex()} was kept by failed: scheduler.result=Unschedulable.",
        f"Attempt 3 of default/web-0: Unschedulable, took 9 ms. {decided}",
        "Votes:",
        "  failed  yes  scheduler.result=Unschedulable",
        "  slow    no   SchedulePod took 9 ms, not longer than 1s",
        "  broken  -    it failed",
        "  tried   yes  (shadow) 9 ms",
        "Linked traces:",
        f"  to    previous-attempt  attempt 1 of default/web-0 ({one})  not kept (no policy said yes)",
        f"  to    creation          {(b'?' * 16).hex()}       not received",
        f"  from  previous-attempt  attempt 4 of default/web-0 ({four})  here",
    ]


def test_a_trace_that_was_not_kept_is_explained_and_has_its_links_while_its_decision_is_held() -> None:
    attempt = no_room(links=[Link(b"?" * 16, b"?" * 8, PREVIOUS)])
    library = library_of(explained(attempt.batch("not_sampled", "", "no policy said yes"), *VOTES[1:2]))
    told = lines(library, attempt.trace_id)
    assert told[0].endswith("was not kept: no policy said yes.")
    assert "  slow  no  SchedulePod took 9 ms, not longer than 1s" in told
    assert told[-1].endswith("not received")


def test_a_link_between_traces_that_were_not_kept_is_told_at_both_ends() -> None:
    first = no_room()
    link = Link(first.trace_id, first.root_id, PREVIOUS)
    second = no_room(number=2, start=START + 10, links=[link, link])
    library = library_of(*(one.batch("not_sampled", "", "no policy said yes") for one in (first, second)))
    for asked, direction, other in ((first, "from", second), (second, "to", first)):
        (told,) = (one for one in lines(library, asked.trace_id) if "previous-attempt" in one)
        assert told.split()[0] == direction
        assert f"of default/web-0 ({other.trace_id.hex()[:8]})  not kept (no policy said yes)" in told
    forgotten = library_of(first.batch("not_sampled", "", ""))
    assert links_to(second.trace_id, forgotten.decisions.whole()) == []


def test_a_kept_trace_has_the_links_of_those_that_were_not_once() -> None:
    first = no_room()
    others = [no_room(number=n, start=START + n, links=[Link(first.trace_id, first.root_id, PREVIOUS)]) for n in (2, 3)]
    library = library_of(first.batch(), others[0].batch(), others[1].batch("not_sampled", "", ""))
    arriving = library.arriving(first.trace_id)
    assert [link.trace_id for link in arriving] == [one.trace_id for one in others]


def test_votes_whose_spans_are_gone_are_told_without_why() -> None:
    library = Library(max_decisions_mib=1)
    attempt = MadeAttempt()
    one = attempt.verdict()
    one.votes = {"failed": "sampled"}
    library.read(Verdict(one.trace_id, "sampled", "failed", "because", START, START, 6, one.votes), None)
    told = lines(library, attempt.trace_id)
    assert "Votes (what each rests on is not held):" in told
    assert told[-1] == "Linked traces: not in this source, for no span of this trace is held."


def test_many_votes_and_links_are_counted_and_stand_in_the_details() -> None:
    links = [Link(bytes([n]) * 16, b"?" * 8, PREVIOUS) for n in range(1, 20)]
    votes = [PolicyVote(f"policy-{n}", "t", "not_sampled", "no") for n in range(20)]
    attempt = no_room(links=links)
    library = library_of(explained(attempt.batch("not_sampled", "", ""), *votes))
    told = library.why_trace(attempt.trace_id)
    assert told is not None
    assert len(told.lines) == 12
    assert sum("more" in plain(line) for line in told.lines) == 2
    details = "\n".join(map(plain, told.details))
    assert all(f"policy-{n} " in details for n in range(20))
    assert details.count("previous-attempt") == 19


def test_a_dry_run_says_that_the_spans_pass() -> None:
    batch = MadeAttempt().batch("not_sampled", "", "no policy said yes")
    batch.verdicts[0].dry_run = True
    assert "It is a dry run" in lines(library_of(batch), MadeAttempt().trace_id)[0]


def test_spans_that_nobody_decided_on_are_told_as_such() -> None:
    library = Library()
    library.keep(MadeAttempt().groups(), START)
    told = lines(library, MadeAttempt().trace_id)
    assert "no decision about it is in this source; its spans are here" in told[0]
    assert told[1] == "Attempt 1 of default/web-0: Success, took 9 ms."


def test_nothing_is_known_of_an_unknown_trace() -> None:
    assert Library().why_trace(b"?" * 16) is None
    assert answer_query(Library(), WhyQuestion(trace=(b"?" * 16).hex()), START, live=True).problem.startswith(
        "nothing is known"
    )


def test_the_latest_of_several_decisions_is_told_and_the_others_in_the_details() -> None:
    attempt = MadeAttempt()
    decisions: list[tuple[Decision, str]] = [("not_sampled", ""), ("sampled", "late-error")]
    library = library_of(*(attempt.batch(decision, policy) for decision, policy in decisions))
    assert "was kept by late-error" in lines(library, attempt.trace_id)[0]
    told = library.why_trace(attempt.trace_id)
    assert told is not None
    assert any("not kept" in plain(line) for line in told.details)


def test_hostile_words_stay_words() -> None:
    links = [Link(b"?" * 16, b"?" * 8, {"podtrail.link.type": HOSTILE})]
    attempt = MadeAttempt(namespace=HOSTILE, name=HOSTILE, result=HOSTILE, links=links)
    batch = explained(attempt.batch("sampled", HOSTILE, HOSTILE), PolicyVote(HOSTILE, HOSTILE, "sampled", HOSTILE))
    told = library_of(batch).why_trace(attempt.trace_id)
    assert told is not None
    assert all(plain(line).isprintable() for line in (*told.lines, *told.details))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "Ask for one of"),
        ({"pod": "a/b", "trace": "0" * 32}, "Ask for one of"),
        ({"trace": "xyz"}, "32 hexadecimal digits"),
        ({"pod": "x" * 600}, "at most 512"),
        ({"pod": "a/b", "attempt": "-1"}, "number of an attempt"),
        ({"pod": "a/b", "attempt": "9" * 30}, "number of an attempt"),
        ({"trace": "0" * 32, "attempt": "1"}, "number of an attempt"),
    ],
)
def test_a_question_that_asks_nothing_says_why(query: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WhyQuestion.read(query)


def test_a_pod_is_found_by_name_or_uid_and_an_attempt_that_is_not_held_is_named() -> None:
    library = library_of(no_room().batch())
    for asked in ("default/web-0", "web-0", MadeAttempt().uid):
        told = answer_query(library, WhyQuestion(pod=asked), START, live=True)
        assert told.pod is not None
        assert told.pod.name == "web-0"
    for question, words in (
        (WhyQuestion(pod="default/web-1"), "nothing is known of Pod default/web-1"),
        (WhyQuestion(pod="web"), "nothing is known of Pod web; there is default/web-0"),
        (WhyQuestion(pod="prod/web-0"), "nothing is known of Pod prod/web-0; there is default/web-0"),
        (WhyQuestion(pod="default/web-0", attempt=9), "attempt 9 of default/web-0 is not held; of 1 there are 1"),
    ):
        assert words in answer_query(library, question, START, live=True).problem


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("wbe-0", "nothing is known of Pod wbe-0; there is default/web-0"),
        ("default/web-O", "nothing is known of Pod default/web-O; there is default/web-0"),
        ("Web-00", "nothing is known of Pod Web-00; there is default/web-0"),
        ("nobody", "nothing is known of Pod nobody"),
    ],
)
def test_a_mistyped_name_is_answered_with_those_like_it(asked: str, problem: str) -> None:
    library = library_of(no_room().batch(), MadeAttempt(uid="other", name="train-17").batch())
    assert answer_query(library, WhyQuestion(pod=asked), START, live=True).problem == problem


def test_of_many_attempts_the_first_and_the_last_that_are_held_are_named() -> None:
    library = library_of(*(no_room(number=at, start=START + at * 1_000_000_000).batch() for at in range(1, 31)))
    problem = answer_query(library, WhyQuestion(pod="default/web-0", attempt=99), START, live=True).problem
    assert problem.endswith("of 30 there are 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30")


def test_of_several_pods_of_one_name_the_latest_is_told_and_the_others_are_named() -> None:
    library = library_of(no_room(uid="one").batch(), MadeAttempt(uid="two", start=START + 5).batch())
    told = answer_query(library, WhyQuestion(pod="default/web-0"), START, live=True)
    assert told.pod is not None
    assert told.pod.uid == "two"
    assert any("Earlier Pods of this name: one" in plain(line) for line in told.explanation.details)


def test_a_name_that_several_namespaces_have_is_answered_with_these() -> None:
    library = library_of(no_room().batch(), no_room(uid="two", namespace="prod").batch())
    told = answer_query(library, WhyQuestion(pod="web-0"), START, live=True)
    assert told.as_json() == {
        "error": "2 namespaces have a Pod web-0",
        "namespaces": ["default", "prod"],
        "choices": [
            {"cluster": "", "namespace": "default", "key": no_room().uid},
            {"cluster": "", "namespace": "prod", "key": "two"},
        ],
    }
    alone = answer_query(library, WhyQuestion(pod="prod/web-0"), START, live=True)
    assert alone.pod is not None
    assert alone.pod.uid == "two"


def test_many_pods_of_a_like_name_are_counted() -> None:
    library = library_of(*(no_room(uid=f"{n}", name=f"web-{n}").batch() for n in range(8)))
    problem = answer_query(library, WhyQuestion(pod="web"), START, live=True).problem
    assert problem.endswith("default/web-3, default/web-4 and 3 more")


def test_the_answer_as_json_has_lines_and_story() -> None:
    told = answer_query(library_of(no_room().batch()), WhyQuestion(pod="default/web-0"), START, live=True).as_json()
    assert told["pod"]["state"] == "unschedulable"
    assert told["lines"][0][0] == {"text": "default/web-0", "style": "strong"}
    of_trace = answer_query(
        library_of(no_room().batch()), WhyQuestion(trace=no_room().trace_id.hex()), START, live=True
    )
    assert of_trace.as_json()["decisions"][0]["policy"] == "failed"
    assert trace_id(no_room().trace_id.hex()) == no_room().trace_id
