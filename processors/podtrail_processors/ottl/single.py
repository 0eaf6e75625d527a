"""Parts of conditions that read one field only: what they are asked is asked of the field's distinct values."""

from collections.abc import Callable
from typing import Any, NamedTuple

from podtrail.otlp.surroundings import encode_status_code
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.paths import Column
from podtrail_processors.ottl.resolve import Resolver
from podtrail_processors.ottl.telemetry import Telemetry
from podtrail_processors.ottl.values.errors import EvaluationError

_AROUND = ("resource", "scope")


class Read(NamedTuple):
    """What a part of a condition reads."""

    column: Column
    key: str | None = None
    """Of attributes."""


_NOTHING = Read("")


class SingleField:
    """Tells which parts of a condition read one field only, and what makes them true."""

    def __init__(
        self,
        resolver: Resolver,
        compiled: Callable[[syntax.SyntaxNode], Callable[[Telemetry], bool]],
        *,
        errors_count: bool,
    ) -> None:
        """`errors_count`: whether a part that fails is as good as true."""
        self._resolver = resolver
        self._compile = compiled
        self._errors_count = errors_count

    def read(self, node: syntax.SyntaxNode) -> Read | None:
        """Return the one field that a part reads; None when it reads several or none."""
        reads = {self._read(part) for part in syntax.within(node)} - {_NOTHING}
        return reads.pop() if len(reads) == 1 else None

    def sought(self, node: syntax.SyntaxNode) -> Sought | None:
        """Return the question to the field's values; None when a part is true without the field, too."""
        read = self.read(node)
        if read is None:
            return None
        holds = self._compile(node)
        if read.key is None:
            return Sought(read.column, lambda value: self._is_true(holds, read.column, value))
        if self._is_true(holds, "attributes", ()):
            return None
        return Sought("attributes", lambda pair: self._is_true(holds, "attributes", (pair,)), read.key)

    def _read(self, node: syntax.SyntaxNode) -> Read | None:
        """Return what a node itself reads; None when that is no single field."""
        if self._resolver.is_root_check(node) or self._resolver.is_clock(node):
            return None
        if not isinstance(node, syntax.Path):
            return _NOTHING
        field, keys = self._resolver.path(node)
        if field.column == "attributes":
            match keys[:1]:
                case (syntax.Constant(value=str() as key),):
                    return Read("attributes", key)
            return None
        return Read(field.column) if field.column else None

    def _is_true(self, holds: Callable[[Any], bool], field: Column, value: object) -> bool:
        """Ask a part about one value."""
        telemetry, span = _OneField(), _OneField()
        if field == "status":
            value = encode_status_code(value)
        setattr(telemetry if field in _AROUND else span, field, value)
        telemetry.span = span
        try:
            return holds(telemetry)
        except EvaluationError:
            return self._errors_count


class _OneField:
    """A span, or what is around one, of which a single field is there."""

    span: "_OneField"
