from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header
from podtrail.story import time_shares

TRACE = bytes(range(16))


def span(number: int, parent: int, name: str, start: int, end: int, **attributes: str | int) -> bytes:
    return encode_span(
        trace_id=TRACE,
        span_id=bytes([number]) * 8,
        parent_span_id=bytes([parent]) * 8 if parent else b"",
        name=name,
        start=start,
        end=end,
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
    )


def group(*spans: bytes) -> Group:
    return Group(resource_header({}), scope_header("x"), TRACE, frame(list(spans)), len(spans))


def plugin(number: int, parent: int, name: str, start: int, end: int, **more: int) -> bytes:
    told: dict[str, str | int] = {"scheduler__plugin__name": name, "scheduler__plugin__extension_point": "filter"}
    return span(number, parent, f"plugin: {name}", start, end, **told, **more)


def test_a_span_has_for_itself_what_none_below_it_covers() -> None:
    shares = time_shares(
        [group(span(1, 0, "root", 0, 100), span(2, 1, "a", 10, 40), span(3, 1, "b", 30, 60), span(4, 1, "c", 90, 200))]
    )
    assert {share.who: share.took for share in shares} == {"c": 110, "root": 40, "a": 30, "b": 30}
    assert [share.who for share in shares][:2] == ["c", "root"]


def test_a_plugin_has_the_time_in_its_calls_and_is_told_by_its_extension_point() -> None:
    [slow, *_] = time_shares(
        [
            group(
                span(1, 0, "filter", 0, 100),
                plugin(2, 1, "Fit", 0, 100, scheduler__duration_ns=400),
                plugin(3, 1, "Fit", 0, 100, scheduler__duration_ns=500),
                plugin(4, 1, "Taint", 0, 7),
            )
        ]
    )
    assert (slow.who, slow.point, slow.plugin, slow.took, slow.spans) == ("Fit", "filter", True, 900, 2)
    assert slow.span_id == bytes([3]) * 8


def test_a_ring_of_parents_and_what_ends_before_it_starts_do_no_harm() -> None:
    shares = time_shares([group(span(1, 2, "a", 10, 5), span(2, 1, "b", 0, 50), span(3, 3, "c", 1, 2))])
    assert {share.who: share.took for share in shares} == {"b": 50, "c": 1}
