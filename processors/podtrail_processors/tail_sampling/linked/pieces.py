"""The spans of a trace in the pieces in which they came."""

from collections.abc import Iterator, Sequence
from typing import overload

from podtrail.otlp import Group
from podtrail_processors.evidence.evidence import Header


class Pieces(Sequence[Group]):
    """Spans under one header: one group, put together when somebody looks at it, which of most traces nobody does."""

    __slots__ = ("_groups", "_header", "_pieces", "_span_count", "_trace_id")

    def __init__(self, header: Header, trace_id: bytes, pieces: Sequence[bytes], span_count: int) -> None:
        self._header = header
        self._trace_id = trace_id
        self._pieces = pieces
        self._span_count = span_count
        self._groups: tuple[Group, ...] = ()

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Group]: ...
    def __getitem__(self, at: int | slice) -> Group | Sequence[Group]:
        if not self._groups:
            resource, scope = self._header
            self._groups = (Group(resource, scope, self._trace_id, b"".join(self._pieces), self._span_count),)
            self._pieces = ()
        return self._groups[at]

    def __iter__(self) -> Iterator[Group]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == tuple(other)

    __hash__ = None  # type: ignore[assignment]
