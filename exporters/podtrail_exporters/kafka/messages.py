"""What a batch becomes: messages for topics, keyed by trace or by Pod, none larger than it may be. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from podtrail.otlp import Batch, Group, frame, resource_attributes, split, write_request
from podtrail.otlp.json import write_json_request
from podtrail.pod_identity import PodKeys, most_bytes_of_keys
from podtrail.transport.kafka.message import Headers, Message
from podtrail.transport.kafka.topic_name import is_topic
from podtrail_exporters.kafka.config import SIGNAL_HEADER, Config

_FRAMING: Final = 128
"""Bytes that a message takes besides key, value and headers, generously."""
_FRAME: Final = 24
"""Bytes that a group's tags and lengths take in a request, generously."""


class Parcel(NamedTuple):
    """A message, and the spans in it."""

    message: Message
    groups: Sequence[Group]

    @property
    def span_count(self) -> int:
        """How many spans it has."""
        return sum(group.span_count for group in self.groups)


class Parcels(NamedTuple):
    """What a batch became."""

    parcels: Sequence[Parcel]
    too_large: int
    """How many spans no message can hold, each of them alone."""


class MessageMaker:
    """Makes messages of batches. Groups stay in their order among those of one key."""

    def __init__(self, config: Config, budget: int = 0) -> None:
        """Make messages as a configuration says. `budget`: `Context.memory_budget`."""
        self._topic = config.topic_in_use
        self._attribute = config.topic_from_attribute
        self._write: Callable[[Iterable[Group]], bytes] = (
            write_request if config.encoding_in_use == "otlp_proto" else write_json_request
        )
        headers: Headers = [(name, value.get_secret_value()) for name, value in config.record_headers.items()]
        if config.signal_header:
            headers.append((SIGNAL_HEADER, "traces"))
        self._headers = headers or None
        self._keyed = config.key_by is not None
        self._pods: PodKeys | None = None
        if config.knows_pods:
            self._pods = PodKeys(with_root=config.key_by == "auto", most_bytes=most_bytes_of_keys(budget))
        self._room = config.producer.max_message_bytes - _FRAMING - Message("", b"", None, self._headers).size

    @property
    def known_too_late(self) -> int:
        """How many traces had left by their id before something came of them that names a Pod."""
        return 0 if self._pods is None else self._pods.known_too_late

    def forget(self, idle: int) -> int | None:
        """Forget Pods that are too old so long after the last batch, as `PodKeys.forget` does."""
        return None if self._pods is None else self._pods.forget(idle)

    def parcels(self, batch: Batch) -> Parcels:
        """Return the messages of a batch."""
        found: list[Parcel] = []
        too_large = 0
        for (topic, key), groups in self._parted(batch):
            room = self._room - len(key or b"")
            for run in _runs(groups, room):
                fitting, excess = self._fitted(run, room)
                too_large += excess
                found += [Parcel(Message(topic, value, key, self._headers), part) for value, part in fitting]
        return Parcels(found, too_large)

    def _parted(self, batch: Batch) -> Iterable[tuple[tuple[str, bytes | None], Sequence[Group]]]:
        """Return the groups of a batch by topic and key."""
        if not self._keyed and not self._attribute:
            return [((self._topic, None), batch.groups)] if batch.groups else []
        keys = self._keys(batch)
        parts: dict[tuple[str, bytes | None], list[Group]] = {}
        for group in batch.groups:
            parts.setdefault((self._topic_of(group), keys.get(group.trace_id)), []).append(group)
        return parts.items()

    def _keys(self, batch: Batch) -> Mapping[bytes, bytes | None]:
        if not self._keyed:
            return {}
        by_trace = {group.trace_id: group.trace_id.hex().encode() for group in batch.groups}
        if self._pods is None:
            return by_trace
        by_pod = self._pods.keys(batch.groups, batch.arrived)
        return {trace_id: by_pod[trace_id] or key for trace_id, key in by_trace.items()}

    def _topic_of(self, group: Group) -> str:
        if not self._attribute:
            return self._topic
        named = resource_attributes(group.resource).get(self._attribute)
        return named if isinstance(named, str) and is_topic(named) else self._topic

    def _fitted(self, groups: Sequence[Group], room: int) -> tuple[list[tuple[bytes, Sequence[Group]]], int]:
        """Return groups as values that fit, each with its groups, and how many spans fit nowhere."""
        value = self._write(groups)
        if len(value) <= room:
            return [(value, groups)], 0
        halves = _halves(groups)
        if not halves:
            return [], 1
        first, first_excess = self._fitted(halves[0], room)
        second, second_excess = self._fitted(halves[1], room)
        return first + second, first_excess + second_excess


def _runs(groups: Sequence[Group], room: int) -> Iterator[Sequence[Group]]:
    """Yield groups in runs that fit as protobuf, or are one group; as JSON they are larger."""
    start = size = 0
    for at, group in enumerate(groups):
        more = len(group.resource) + len(group.scope) + len(group.spans) + _FRAME
        if size and size + more > room:
            yield groups[start:at]
            start, size = at, 0
        size += more
    if start < len(groups):
        yield groups[start:]


def _halves(groups: Sequence[Group]) -> tuple[Sequence[Group], Sequence[Group]] | None:
    """Return groups in two halves, those of a single one by its spans; None for a single span."""
    if len(groups) > 1:
        middle = len(groups) // 2
        return groups[:middle], groups[middle:]
    (only,) = groups
    if only.span_count == 1:
        return None
    spans = split(only.spans)
    middle = len(spans) // 2
    first, second = (
        only._replace(spans=frame(part), span_count=len(part)) for part in (spans[:middle], spans[middle:])
    )
    return [first], [second]
