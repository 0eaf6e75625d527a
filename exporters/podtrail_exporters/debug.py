"""`debug`: shows spans in podtrail's own log, on stderr."""

import asyncio
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from podtrail.component import Context, Factory, LogLines
from podtrail.config.types import Model
from podtrail.otlp import Batch, SpanView, Value, split
from podtrail_exporters.span_tree import trees

Verbosity = Annotated[
    Literal["basic", "normal", "detailed"],
    BeforeValidator(lambda word: word.lower() if isinstance(word, str) else word),
]


class Config(Model):
    """Shows spans in podtrail's own log."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "sending_queue": "remove it: nothing waits here",
        **dict.fromkeys(("output_paths", "use_internal_logger"), "remove it: spans are shown in podtrail's own log"),
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    verbosity: Verbosity = Field(
        "basic",
        description="`basic`: a line a batch; `normal`: a line a span; `detailed`: trees, with every field.",
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
            self._log.info("%s", LogLines(_lines(batch, self._config.verbosity)))
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
    if verbosity == "detailed":
        yield from trees(batch.groups)
        return
    for group in batch.groups:
        yield from map(_line, map(SpanView, split(group.spans)))


def _line(span: SpanView) -> str:
    duration = "unknown" if span.duration is None else f"{span.duration / 1e6:.3f} ms"
    return f"  {span.name!r} {span.trace_id.hex()} {span.span_id.hex()} {duration}{_attributes(span.attributes)}"


def _attributes(attributes: Mapping[str, Value]) -> str:
    """Return attributes as text; repr keeps what was sent from steering the terminal."""
    return "".join(f" {key if key.isprintable() else repr(key)}={value!r}" for key, value in attributes.items())


def create(config: Config, context: Context) -> DebugExporter:
    """Make the exporter."""
    return DebugExporter(config, context)


FACTORY = Factory(kind="exporter", type="debug", Config=Config, create=create)
