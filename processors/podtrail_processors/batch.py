"""`batch`: gathers spans, so that exporters send few large requests. The Collector's processor of that name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple, Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory, Taken
from podtrail.config.types import MILLISECOND, Model, NonNegativeDuration
from podtrail.otlp import Batch, Group, frame, merge, split
from podtrail.state import StateShape, known_version

_SIZES = (10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 20_000)


class Config(Model):
    """Settings of `batch`."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("metadata_keys", "metadata_cardinality_limit"), "remove it: what came with a request is not known here"
        ),
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    timeout: NonNegativeDuration = Field(
        default=200 * MILLISECOND,
        description="How long spans wait at most for a batch to fill. `0s`: they leave at once, and only "
        "`send_batch_max_size` has an effect.",
    )
    send_batch_size: int = Field(
        default=8192,
        ge=0,
        description="Number of spans at which a batch leaves before the timeout. `0`: they leave at once.",
    )
    send_batch_max_size: int = Field(
        default=0,
        ge=0,
        description="Spans in a batch at most: a larger one is split. `0`: no limit. At least `send_batch_size`.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if 0 < self.send_batch_max_size < self.send_batch_size:
            raise ValueError("send_batch_max_size must be greater or equal to send_batch_size")
        return self


class _Saved(NamedTuple):
    parts: tuple[tuple[tuple[Group, ...], int], ...]
    due: int | None


_SHAPE: Final = StateShape[_Saved](_Saved)


class BatchProcessor:
    """Holds batches until there are `send_batch_size` spans or the first has waited for `timeout`."""

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._at_once = not config.timeout or not config.send_batch_size
        self._parts: list[Batch] = []
        self._spans = 0
        self._due: int | None = None
        self._sent = {
            trigger: context.metrics.counter(
                f"otelcol_processor_batch_{trigger}_trigger_send", f"Batches sent because of {why}.", ("processor",)
            )
            for trigger, why in (("batch_size", "their size"), ("timeout", "the timeout"))
        }
        self._size = context.metrics.histogram(
            "otelcol_processor_batch_batch_send_size", "Spans in the batches that were sent.", _SIZES, ("processor",)
        )
        self._labels = (context.id,)

    @property
    def passes_on(self) -> bool:
        """Whether nothing waits for more to join it."""
        return self._at_once

    def add(self, batch: Batch, now: int) -> Taken:
        """Take a batch; return its verdicts, which wait for nothing, and what is full."""
        told = (Batch((), batch.arrived, batch.verdicts),) if batch.verdicts else ()
        if not batch.groups:
            return Taken(told)
        if not self._parts:
            self._due = now + self._config.timeout
        self._parts.append(replace(batch, verdicts=()))
        self._spans += batch.span_count
        if not self._at_once and self._spans < self._config.send_batch_size:
            return Taken(told)
        return Taken((*told, *self._let_go("batch_size", now, everything=self._at_once)))

    def _let_go(self, trigger: str, now: int, *, everything: bool) -> Sequence[Batch]:
        if not self._parts:
            return ()
        whole = merge(self._parts)
        self._parts, self._spans, self._due = [], 0, None
        most = self._config.send_batch_max_size
        out = list(_pieces(whole, most)) if most and whole.span_count > most else [whole]
        if not everything and most and len(out) > 1 and out[-1].span_count < self._config.send_batch_size:
            # As in the Collector: what is left over after splitting waits for more, on a timer of its own.
            left = out.pop()
            self._parts, self._spans, self._due = [left], left.span_count, now + self._config.timeout
        self._sent[trigger].add(len(out), *self._labels)
        for batch in out:
            self._size.observe(batch.span_count, *self._labels)
        return out

    def expire(self, now: int, limit: int) -> Sequence[Batch]:  # noqa: ARG002 - cheap however many spans there are
        """Let go of all that waits when the first of it has waited for long enough."""
        if self._due is None or self._due > now:
            return ()
        return self._let_go("timeout", now, everything=True)

    def deadline(self) -> int | None:
        """Return when the timeout strikes."""
        return self._due

    def held(self) -> int:
        """Return the number of spans that wait."""
        return self._spans

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span that waits."""
        return min((part.arrived for part in self._parts), default=None)

    state_version = 1

    def save_state(self) -> Any:
        """Return what waits, and when it leaves."""
        return _Saved(tuple([(tuple(part.groups), part.arrived) for part in self._parts]), self._due)

    def restore_state(self, version: int, state: Any) -> None:
        """Have wait what waited."""
        known_version(version, 1)
        saved = _SHAPE.read(state)
        self._parts = [Batch([*groups], arrived) for groups, arrived in saved.parts]
        self._spans, self._due = sum(part.span_count for part in self._parts), saved.due

    def take_over(self, predecessor: "BatchProcessor", now: int) -> None:
        """Take what waits, no later due than it was; what is too much for this configuration leaves at `now`."""
        if not predecessor._parts:
            return
        self._parts = [*predecessor._parts, *self._parts]
        self._spans += predecessor._spans
        full = self._at_once or self._config.send_batch_size <= self._spans
        self._due = now if full else min(due for due in (predecessor._due, self._due) if due is not None)
        predecessor._parts, predecessor._spans, predecessor._due = [], 0, None

    def drain(self, now: int) -> Sequence[Batch]:
        """Let go of everything."""
        return self._let_go("timeout", now, everything=True)


def _pieces(whole: Batch, most: int) -> Iterator[Batch]:
    """Yield a batch in pieces of `most` spans, the last one smaller."""
    piece: list[Group] = []
    room = most
    for group in whole.groups:
        for part in _parts_of(group, room, most):
            piece.append(part)
            room -= part.span_count
            if not room:
                yield Batch(piece, whole.arrived)
                piece, room = [], most
    if piece:
        yield Batch(piece, whole.arrived)


def _parts_of(group: Group, room: int, most: int) -> Iterator[Group]:
    """Yield a group in parts, the first of `room` spans, the others of `most`."""
    if group.span_count <= room:
        yield group
        return
    spans = split(group.spans)
    first = 0
    while first < len(spans):
        part = spans[first : first + room]
        yield group._replace(spans=frame(part), span_count=len(part))
        first, room = first + room, most


def _create(config: Config, context: Context) -> BatchProcessor:
    return BatchProcessor(config, context)


FACTORY = Factory(kind="processor", type="batch", Config=Config, create=_create)
