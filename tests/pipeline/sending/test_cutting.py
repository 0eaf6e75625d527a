"""Cutting large batches into requests: every byte arrives, in order, in pieces that fit."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header, split, write_request
from podtrail.pipeline.sending.batching import cut, request_size

BOUND = 512 << 10
HEADERS = [(resource_header({"r": "x" * size}), scope_header("s" * size)) for size in (0, 10, 40_000)]

GROUPS = st.lists(
    st.tuples(
        st.sampled_from(HEADERS), st.lists(st.sampled_from([0, 10, 5_000, 90_000, 400_000]), min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=12,
)


def batch_of(groups: list[tuple[tuple[bytes, bytes], list[int]]]) -> Batch:
    made = []
    for number, ((resource, scope), sizes) in enumerate(groups, 1):
        trace_id = number.to_bytes(16, "big")
        spans = [
            encode_span(trace_id=trace_id, span_id=at.to_bytes(8, "big"), name="x" * size, start=1, end=2)
            for at, size in enumerate(sizes, 1)
        ]
        made.append(Group(resource, scope, trace_id, frame(spans), len(spans)))
    return Batch(made, arrived=0)


@settings(deadline=None, max_examples=60)
@given(GROUPS)
def test_pieces_fit_and_make_up_the_whole(groups: list[tuple[tuple[bytes, bytes], list[int]]]) -> None:
    batch = batch_of(groups)
    pieces = list(cut(batch))
    assert all(len(write_request(piece.groups)) <= min(BOUND, request_size(piece)) for piece in pieces)
    assert sum(piece.span_count for piece in pieces) == batch.span_count
    sent = [
        (g.resource, g.scope, g.trace_id, span) for piece in pieces for g in piece.groups for span in split(g.spans)
    ]
    assert sent == [(g.resource, g.scope, g.trace_id, span) for g in batch.groups for span in split(g.spans)]
    assert all(group.span_count == len(split(group.spans)) for piece in pieces for group in piece.groups)


@settings(deadline=None, max_examples=60)
@given(GROUPS)
def test_pieces_are_not_smaller_than_need_be(groups: list[tuple[tuple[bytes, bytes], list[int]]]) -> None:
    pieces = list(cut(batch_of(groups)))
    for earlier, later in pairwise(pieces):
        first = next(cut(Batch(later.groups[:1], 0)))
        assert request_size(earlier) + request_size(first) > BOUND
