"""A configuration that changed between two attempts is told, with who changed it as far as that is known."""

from collections.abc import Mapping

from podtrail.otlp import Group, Link, Value, encode_span, frame, resource_header, scope_header
from podtrail.story import Library, plain
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 1_000_000_000
A, B = "a1b2c3000000", "d4e5f6000000"
CHANGE = b"\xcc" * 16
CALL = b"call" * 2
TO_CHANGE = Link(CHANGE, CALL, {"podtrail.link.type": "configuration", "podtrail.link.trusted": False})
BETWEEN = "The scheduler's configuration changed between attempt "


def made(number: int, generation: str = "", *links: Link, result: str = "Unschedulable") -> MadeAttempt:
    attributes: dict[str, Value] = {"scheduler.config.generation": generation} if generation else {}
    start = START + number * SECOND
    if result == "Success":
        return MadeAttempt(number=number, start=start, attributes=attributes, links=links)
    return no_room(number=number, start=start, attributes=attributes, links=links)


def reconciled(attributes: Mapping[str, Value] | None = None) -> Group:
    told: dict[str, Value] = {
        "k8s.object.kind": "Scheduler",
        "k8s.object.name": "podtrail",
        "k8s.namespace.name": "default",
        **(attributes or {}),
    }
    span = encode_span(
        trace_id=CHANGE, span_id=CALL, name="reconcile apply", start=START, end=START + MS, attributes=told
    )
    return Group(resource_header({"service.name": "operator"}), scope_header("t"), CHANGE, frame([span]), 1)


def library(*attempts: MadeAttempt) -> Library:
    found = Library()
    for attempt in attempts:
        batch = attempt.batch()
        found.decide("traces", batch)
        found.keep(batch.groups, batch.arrived)
    return found


def told(found: Library, attempt: int | None = None) -> list[str]:
    (pod,) = found.find("web-0", "default")
    explanation = found.why_pod(pod, START + 60 * SECOND, live=True, attempt=attempt)
    assert explanation is not None
    assert len(explanation.lines) <= 12
    return [plain(line) for line in explanation.lines]


def changes(found: Library, attempt: int | None = None) -> list[str]:
    return [line for line in told(found, attempt) if line.startswith(BETWEEN)]


def test_a_change_says_between_which_attempts_and_who_made_it() -> None:
    found = library(*(made(number, A) for number in (1, 2, 3)), made(4, B, TO_CHANGE))
    found.keep([reconciled()], START)
    assert changes(found) == [
        f"{BETWEEN}3 and 4 (a1b2c3 → d4e5f6), by reconcile apply of Scheduler default/podtrail, trace {CHANGE.hex()}."
    ]


def test_so_does_a_pod_that_was_scheduled_with_the_new_one() -> None:
    found = library(made(1, A), made(2, B, TO_CHANGE, result="Success"))
    assert told(found)[0].startswith("default/web-0 was scheduled")
    assert changes(found) == [
        f"{BETWEEN}1 and 2 (a1b2c3 → d4e5f6), by a span that is not held (not received), trace {CHANGE.hex()}."
    ]


def test_who_changed_it_is_left_out_where_nothing_says_so() -> None:
    assert changes(library(made(1, A), made(2, B))) == [f"{BETWEEN}1 and 2 (a1b2c3 → d4e5f6)."]


def test_of_several_changes_the_last_is_told_and_the_others_are_counted() -> None:
    found = library(made(1, A), made(2, B), made(3, A), made(4, A))
    assert changes(found) == [f"{BETWEEN}2 and 3 (d4e5f6 → a1b2c3); 1 more before."]


def test_an_attempt_tells_of_the_change_before_it_alone() -> None:
    found = library(made(1, A), made(2, B), made(3, A))
    assert changes(found, 1) == []
    assert changes(found, 2) == [f"{BETWEEN}1 and 2 (a1b2c3 → d4e5f6)."]
    assert changes(found, 3) == [f"{BETWEEN}2 and 3 (d4e5f6 → a1b2c3)."]


def test_attempts_that_do_not_say_are_no_change() -> None:
    assert changes(library(made(1), made(2))) == []
    assert changes(library(made(1, A), made(2, A))) == []
    assert changes(library(made(1, A), made(2), made(3, A))) == []
    assert changes(library(made(1, A), made(2), made(3, B))) == [f"{BETWEEN}1 and 3 (a1b2c3 → d4e5f6)."]


def test_generations_that_begin_alike_are_told_in_full() -> None:
    found = library(made(1, "a1b2c3000000"), made(2, "a1b2c3000001"))
    assert changes(found) == [f"{BETWEEN}1 and 2 (a1b2c3000000 → a1b2c3000001)."]


def test_an_attempt_that_was_not_kept_tells_its_configuration_as_well() -> None:
    found = library(made(1, A))
    dropped = made(2, B, TO_CHANGE).batch("not_sampled", "", "no policy said yes")
    found.decide("traces", dropped)
    assert len(changes(found)) == 1


def test_what_spans_say_of_it_does_no_harm() -> None:
    hostile = "x\x1b]8;;http://x\x07\u202e\n" * 1000
    found = library(made(1, hostile), made(2, "y" + hostile, TO_CHANGE))
    odd: dict[str, Value] = {"k8s.object.name": hostile, "k8s.object.kind": ["list"], "k8s.namespace.name": 7}
    found.keep([reconciled(odd)], START)
    (line,) = changes(found)
    assert len(line) < 600
    assert not {"\x1b", "\n", "\u202e"} & set(line)


def test_a_link_to_another_span_is_no_change() -> None:
    back = Link(CHANGE, CALL, {"podtrail.link.type": "configuration", "podtrail.link.back": True})
    other = Link(CHANGE, CALL, {"podtrail.link.type": "creation", "note": "configuration"})
    assert changes(library(made(1, A), made(2, B, back, other))) == [f"{BETWEEN}1 and 2 (a1b2c3 → d4e5f6)."]


def test_the_details_have_the_configuration_whole() -> None:
    found = library(made(1, A), made(2, B))
    (pod,) = found.find("web-0", "default")
    explanation = found.why_pod(pod, START + 60 * SECOND, live=True)
    assert explanation is not None
    details = [plain(line) for line in explanation.details]
    assert details[-1].endswith(f"profile default-scheduler, configuration {B}")
    assert next(line.split() for line in details if "configuration" in line) == ["configuration", A, B]
