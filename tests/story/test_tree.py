from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Group, Link, Value, encode_span, frame, resource_header, scope_header
from podtrail.story import BackLink, SpanFate, TraceStory, tell_trace
from podtrail.testing.attempts import MS, no_room

TRACE = b"t" * 16


def unknown(trace_id: bytes, span_id: bytes) -> SpanFate:
    return SpanFate(held=False, label="", words="not received")


def group(*spans: tuple[int, int]) -> Group:
    """Spans given as (own number, parent's number), 0 for none."""
    raw = [
        encode_span(
            trace_id=TRACE,
            span_id=own.to_bytes(8, "big"),
            parent_span_id=parent.to_bytes(8, "big"),
            name=f"span {own}",
            start=1_000 + own,
            end=2_000,
        )
        for own, parent in spans
    ]
    return Group(resource_header({"service.name": "s"}), scope_header("x"), TRACE, frame(raw), len(raw))


def tell(*groups: Group, limit: int = 500) -> TraceStory:
    story = tell_trace(groups, unknown, limit=limit)
    assert story is not None
    return story


def test_rows_stand_depth_first_by_start() -> None:
    story = tell(group((4, 1), (3, 2), (2, 1), (1, 0)))
    assert [(row.name, row.depth, row.offset) for row in story.rows] == [
        ("span 1", 0, 0),
        ("span 2", 1, 1),
        ("span 3", 2, 2),
        ("span 4", 1, 3),
    ]
    assert story.title == "span 1"


def test_a_span_without_its_parent_stands_at_the_left_behind_the_roots() -> None:
    story = tell(group((1, 9), (2, 0)))
    assert [(row.name, row.orphan) for row in story.rows] == [("span 2", False), ("span 1", True)]


def test_parents_in_a_ring_are_all_shown_once() -> None:
    story = tell(group((1, 3), (2, 1), (3, 2), (4, 4)))
    assert sorted(row.name for row in story.rows) == ["span 1", "span 2", "span 3", "span 4"]


def test_deeper_levels_are_left_out_first_and_counted_above() -> None:
    leaves = [(100 + n, 2) for n in range(50)]
    story = tell(group((1, 0), (2, 1), (3, 1), *leaves), limit=10)
    assert [(row.name, row.hidden) for row in story.rows][-1:] == [("span 3", 0)]
    assert len(story.rows) == 10
    assert sum(row.hidden for row in story.rows) == story.span_count - 10


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1), st.integers(1, 12))
def test_every_span_is_shown_or_counted_whatever_the_parents(spans: list[tuple[int, int]], limit: int) -> None:
    story = tell(group(*spans), limit=limit)
    assert len(story.rows) <= limit
    assert len(story.rows) + sum(row.hidden for row in story.rows) == story.span_count == len({o for o, _ in spans})


def test_a_chain_of_thousands_does_not_end_the_recursion() -> None:
    story = tell(group(*((n, n - 1) for n in range(1, 5_000))), limit=100)
    assert story.rows[-1].hidden == 4_999 - 100


def test_links_show_both_ways_with_what_became_of_the_other_end() -> None:
    attempt = no_room(links=[Link(b"p" * 16, b"q" * 8, {"podtrail.link.type": "previous-attempt"})])
    back = BackLink(attempt.root_id, b"n" * 16, b"r" * 8, "next")
    story = tell_trace(attempt.groups(), unknown, [back])
    assert story is not None
    assert [(link.direction, link.type, link.fate.words) for link in story.links] == [
        ("to", "previous-attempt", "not received"),
        ("from", "next", "not received"),
    ]
    assert story.rows[0].links == 2


def test_the_chosen_span_is_told_in_full() -> None:
    attempt = no_room()
    whole = tell(*attempt.groups())
    fit = next(row for row in whole.rows if row.name == "plugin: NodeResourcesFit")
    story = tell_trace(attempt.groups(), unknown, span_id=fit.span_id)
    assert story is not None
    assert ("scheduler.plugin.name", "NodeResourcesFit") in story.chosen.attributes
    assert ("scheduler.nodes.names", '["tight0", "tight1"]') in story.chosen.events[0].attributes
    assert whole.chosen.name == "SchedulePod"
    assert (whole.chosen.status, whole.duration) == ("error", 9 * MS)


def test_no_span_is_no_story() -> None:
    assert tell_trace([], unknown) is None


def test_what_a_span_was_told_of_later_shows_as_its_own_link_and_not_as_a_row() -> None:
    attempt = no_room()
    (first,) = attempt.groups()
    back: dict[str, Value] = {
        "podtrail.link.type": "next-attempt",
        "podtrail.link.back": True,
        "podtrail.inferred": True,
    }
    amendment = encode_span(
        trace_id=first.trace_id,
        span_id=b"a" * 8,
        parent_span_id=attempt.root_id,
        name="podtrail.amendment",
        start=attempt.start,
        end=attempt.start,
        links=[Link(b"n" * 16, b"r" * 8, back)],
    )
    arriving = [BackLink(attempt.root_id, b"n" * 16, b"r" * 8, "previous-attempt")]
    story = tell_trace([first, first._replace(spans=frame([amendment]), span_count=1)], unknown, arriving)
    assert story is not None
    assert "podtrail.amendment" not in [row.name for row in story.rows]
    (link,) = story.links
    assert (link.direction, link.here, link.type, link.inferred) == ("from", attempt.root_id, "next-attempt", True)


def test_a_link_says_itself_that_its_target_was_dropped_when_nothing_else_is_known() -> None:
    told = {"podtrail.link.target": "dropped", "podtrail.link.target.reason": "no policy said yes"}
    story = tell_trace(no_room(links=[Link(b"p" * 16, b"q" * 8, told)]).groups(), unknown)
    assert story is not None
    assert story.links[0].fate.words == "not kept (no policy said yes)"
