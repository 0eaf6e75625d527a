"""Messages of Kafka to records of the pipelines: spans as bytes, and why a message has none."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from podtrail.component import Context
from podtrail.component.partitions import PartitionRecord
from podtrail.otlp import Batch, Intake, MalformedRequest, read_requests
from podtrail.otlp.edit import change_resource
from podtrail.otlp.group import Group
from podtrail.transport.kafka.message import Headers
from podtrail_receivers.intake_counters import IntakeCounters
from podtrail_receivers.kafka.config import Config

_OFF_LOOP: Final = 1 << 20
"""Bytes of a message from which it is decoded in a thread, so that other partitions go on meanwhile."""
_MILLISECOND: Final = 1_000_000
_PREFIX: Final = "kafka.header."
_NOTHING: Final = Intake((), 0, "")


def headers_of(message: Message) -> Headers | None:
    """Return a message's headers, or None if a name is not UTF-8: Kafka allows any bytes, its client does not."""
    try:
        headers = message.headers()
    except (SystemError, UnicodeDecodeError):  # the client reports either, by its version
        return None
    return list(headers.items()) if isinstance(headers, dict) else list(headers or ())


class Poisoned(NamedTuple):
    """A message that can't be read."""

    message: Message
    reason: str


class MessageReader:
    """Reads messages as the configuration says, and counts what was found in them."""

    def __init__(self, config: Config, context: Context) -> None:
        self._read = _reader_of(config.traces.encoding)
        extraction = config.header_extraction
        self._wanted = tuple(dict.fromkeys(extraction.headers)) if extraction.extract_headers else ()
        self._counters = IntakeCounters(context)
        self._log = context.log
        self._is_warned = False
        self._is_rejection_logged = False

    async def __call__(self, messages: Sequence[Message]) -> tuple[Sequence[PartitionRecord], Sequence[Poisoned]]:
        """Return a record for each message, and those that can't be read."""
        values = [message.value() or b"" for message in messages]
        if max(map(len, values), default=0) < _OFF_LOOP:
            found = self._read(values)
        else:
            found = await asyncio.to_thread(self._read, values)
        records: list[PartitionRecord] = []
        poisoned: list[Poisoned] = []
        for message, intake in zip(messages, found, strict=True):
            batch: Batch | None = None
            if isinstance(intake, MalformedRequest):
                poisoned.append(Poisoned(message, str(intake)))
            else:
                batch = self._batch(intake, message)
            records.append(PartitionRecord(_offset(message), _time(message), batch))
        return records, poisoned

    def _batch(self, intake: Intake, message: Message) -> Batch | None:
        self._counters.read("kafka", intake)
        if intake.rejected and not self._is_rejection_logged:
            which = f"{message.topic()}[{message.partition()}] offset {message.offset()}"
            self._log.warning("%s: rejected %s; further rejections are only counted", which, intake.reason)
            self._is_rejection_logged = True
        if intake.other_signal:
            place = f"{message.topic()}[{message.partition()}] offset {message.offset()}"
            self._counters.other_signal("kafka", intake.other_signal, place)
        if not intake.groups:
            return None
        groups = intake.groups
        if self._wanted and (headers := self._headers(message)):
            groups = _with_headers(groups, self._chosen(dict(headers)))
        return Batch(groups, arrived=0)

    def _headers(self, message: Message) -> Headers:
        headers = headers_of(message)
        if headers is None:
            if not self._is_warned:
                which = f"{message.topic()}[{message.partition()}] offset {message.offset()}"
                self._log.warning("cannot read the headers of %s: a name is not UTF-8; its spans have none", which)
            self._is_warned = True
        return headers or []

    def _chosen(self, headers: Mapping[str, str | bytes | None]) -> Mapping[str, str]:
        found = {name: headers[name] for name in self._wanted if name in headers}
        return {_PREFIX + name: _text(value) for name, value in found.items() if value is not None}


def _reader_of(encoding: str) -> Callable[[Sequence[bytes]], Sequence[Intake | MalformedRequest]]:
    if encoding == "otlp_proto":
        return read_requests
    from podtrail.otlp.json import read_json_request

    def read_each(raws: Sequence[bytes]) -> Sequence[Intake | MalformedRequest]:
        return [_read_json(read_json_request, raw) for raw in raws]

    return read_each


def _read_json(read: Callable[[bytes], Intake], raw: bytes) -> Intake | MalformedRequest:
    try:
        return read(raw) if raw else _NOTHING
    except MalformedRequest as error:
        return error


def _with_headers(groups: Sequence[Group], attributes: Mapping[str, str]) -> Sequence[Group]:
    if not attributes:
        return groups
    changed: dict[bytes, bytes] = {}
    for group in groups:
        if group.resource not in changed:
            changed[group.resource] = change_resource(group.resource, attributes, ())
    return [group._replace(resource=changed[group.resource]) for group in groups]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "what was fetched stands somewhere"
    return offset


def _time(message: Message) -> int:
    kind, milliseconds = message.timestamp()
    return 0 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds * _MILLISECOND
