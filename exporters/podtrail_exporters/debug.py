"""`debug`: shows spans in podtrail's own log, on stderr."""

import asyncio
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import ClassVar, Literal, Self

from pydantic import Field

from podtrail.component import Context, Factory
from podtrail.config.types import Model
from podtrail.otlp import KINDS, Batch, SpanView, Value, resource_attributes, scope_name, split

_STATUS = ("unset", "ok", "error")


class Config(Model):
    """Shows spans in podtrail's own log."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "sending_queue": "remove it: nothing waits here",
        **dict.fromkeys(("output_paths", "use_internal_logger"), "remove it: spans are shown in podtrail's own log"),
    }

    verbosity: Literal["basic", "normal", "detailed"] = Field(
        "basic", description="`basic`: a line a batch; `normal`: a line a span; `detailed`: every field."
    )
    sampling_initial: int = Field(2, ge=0, description="Show so many batches each second.")
    sampling_thereafter: int = Field(
        1, ge=0, description="After those show each so-many-th batch of the second; 0: none, 1: all."
    )


class DebugExporter:
    """Logs batches at level info, no more of them in a second than asked for."""

    def __init__(self, config: Config, context: Context) -> None:
        """Show through the log of `context`."""
        self._config = config
        self._log = context.log
        self._second = -1
        self._seen = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        return None

    async def send(self, batch: Batch) -> int:
        """Show a batch, or let it pass. Nothing is ever rejected."""
        if batch.groups and self._chosen():
            self._log.info("%s", "\n".join(_lines(batch, self._config.verbosity)))
        return 0

    def _chosen(self) -> bool:
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._seen = second, 0
        self._seen += 1
        beyond = self._seen - self._config.sampling_initial
        every = self._config.sampling_thereafter
        return beyond <= 0 or (every > 0 and beyond % every == 0)


def _lines(batch: Batch, verbosity: str) -> Iterator[str]:
    traces = len({group.trace_id for group in batch.groups})
    yield f"{batch.span_count} spans of {traces} traces"
    if verbosity == "basic":
        return
    shown: tuple[bytes, bytes] | None = None
    for group in batch.groups:
        if verbosity == "detailed" and shown != (group.resource, group.scope):
            shown = group.resource, group.scope
            yield f"  scope {scope_name(group.scope)!r}, resource{_attributes(resource_attributes(group.resource))}"
        for span in map(SpanView, split(group.spans)):
            yield _line(span)
            if verbosity == "detailed":
                yield from _details(span)


def _line(span: SpanView) -> str:
    duration = "unknown" if span.duration is None else f"{span.duration / 1e6:.3f} ms"
    return f"  {span.name!r} {span.trace_id.hex()} {span.span_id.hex()} {duration}{_attributes(span.attributes)}"


def _details(span: SpanView) -> Iterator[str]:
    kind = KINDS[span.kind] if 0 <= span.kind < len(KINDS) else str(span.kind)
    status = _STATUS[span.status.code] if 0 <= span.status.code < len(_STATUS) else str(span.status.code)
    parent = span.parent_span_id.hex() or "none"
    yield f"    parent {parent}, kind {kind}, flags {span.flags:#x}, trace state {span.trace_state!r}"
    yield f"    start {span.start}, end {span.end}, status {status} {span.status.message!r}"
    for event in span.events:
        yield f"    event {event.name!r} at {event.time}{_attributes(event.attributes)}"
    for link in span.links:
        yield f"    link to {link.trace_id.hex()} {link.span_id.hex()}{_attributes(link.attributes)}"


def _attributes(attributes: Mapping[str, Value]) -> str:
    """Return attributes as text; repr keeps what was sent from steering the terminal."""
    return "".join(f" {key if key.isprintable() else repr(key)}={value!r}" for key, value in attributes.items())


def create(config: Config, context: Context) -> DebugExporter:
    """Make the exporter."""
    return DebugExporter(config, context)


FACTORY = Factory(kind="exporter", type="debug", Config=Config, create=create)
