"""A kube-scheduler's log, line by line, to what it tells: never fails, counts what it could not read."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podtrail.reconstruction import klog, klog_json
from podtrail.reconstruction.calendar import Calendar
from podtrail.reconstruction.census import Census
from podtrail.reconstruction.container import Container
from podtrail.reconstruction.lines import LONGEST_LINE
from podtrail.reconstruction.utiltrace import Block, number_of, read_begin, read_block, read_on
from podtrail.reconstruction.vocabulary import MESSAGES, Kind, read_words

POD = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""`namespace/name` as the API server admits them; a line about another Pod is not believed."""
_OPEN_VALUE = b"=<"
_MOST_HELD = 1 << 16
_MOST_BLOCKS = 64
_BACK = 2_000_000_000
_UID = re.compile(
    rb'\{"name":"(?P<name>[a-z0-9.-]{1,253})","(?:generateName":"[^"]{0,253}","|)namespace":"(?P<namespace>[a-z0-9-]{1,63})",'
    rb'(?:"selfLink":"[^"]*",)?"uid":"(?P<uid>[0-9a-fA-F-]{1,64})"'
)
_OF_NO_POD = frozenset({Kind.PROFILE, Kind.STARTED, Kind.LEADING, Kind.LED})
_POD_KEYS = ("pod", "entity", "preemptor")
_LEVELS = b"IWEFD"


class Told(NamedTuple):
    """What one line tells. Times are Unix nanoseconds."""

    time: int
    kind: Kind
    origin: str
    """Which scheduler: the file and, where the log has it, the process."""
    pod: str
    """`namespace/name`; "" where it is about the scheduler."""
    values: dict[str, str]
    block: Block | None = None


class SchedulerLog:
    """Reads one log. What it holds between lines is bounded."""

    def __init__(self, source: str, near: int, census: Census) -> None:
        """`source` names the file; `near` is a moment about which it was written, Unix nanoseconds."""
        self._source = source
        self._calendar = Calendar(near)
        self._census = census
        self._container = Container()
        self._blocks: dict[bytes, tuple[int, str, Block]] = {}
        self._held: list[bytes] = []
        self._held_size = 0
        self._newest = 0

    def read(self, lines: Iterable[bytes]) -> Iterator[Told]:
        """Yield what lines tell, in their order."""
        census = self._census
        for raw in lines:
            census.lines += 1
            if len(raw) > LONGEST_LINE:
                census.unknown["longer than 1 MiB"] += 1
                continue
            line = raw
            if raw[:1] not in _PLAIN_BEGINS:
                unwrapped = self._container.unwrap(raw)
                if unwrapped is None:
                    census.continued += 1
                    continue
                line, written = unwrapped
                if written is not None:
                    self._calendar.learn(written)
            yield from self._line(line)
        yield from self._release()

    def _line(self, line: bytes) -> Iterator[Told]:
        if line[:1] in _PLAIN_BEGINS and (header := klog.read_header(line)):
            if self._held:
                yield from self._release()
            if line.endswith(_OPEN_VALUE):
                if self._of_interest(line, header):
                    self._hold(line)
                else:
                    self._census.other += 1
                return
            yield from self._text(line, header)
        elif line[:1] == b"{":
            yield from self._json(line)
        elif line.startswith(b"Trace["):
            yield from self._trace_goes_on(line)
        elif line[:1] == b"\t" or line.startswith(b" >"):
            self._census.continued += 1
            if self._held:
                self._hold(line)
        elif not line.strip():
            self._census.continued += 1
        else:
            self._census.unknown["not a line of kube-scheduler"] += 1

    def _of_interest(self, line: bytes, header: klog.Header) -> bool:
        return klog.message_of(line, header.end)[0] in MESSAGES

    def _hold(self, line: bytes) -> None:
        if self._held_size < _MOST_HELD:
            self._held.append(line)
            self._held_size += len(line)

    def _release(self) -> Iterator[Told]:
        """Read what was held: a line with values of several lines, told as one of one line."""
        if not self._held:
            return
        held, self._held, self._held_size = self._held, [], 0
        joined = held[0].removesuffix(b"<") + b'"'
        for line in held[1:]:
            if line.startswith(b" >"):
                joined = joined.removesuffix(b"\\n") + b'"' + line[2:]
                if joined.endswith(_OPEN_VALUE):
                    joined = joined.removesuffix(b"<") + b'"'
            else:
                joined += line[1:].replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b"\\n"
        if header := klog.read_header(joined):
            yield from self._text(joined, header)

    def _text(self, line: bytes, header: klog.Header) -> Iterator[Told]:
        message, at = klog.message_of(line, header.end)
        kind = MESSAGES.get(message)
        if kind is not None:
            values = klog.pairs_of(line, at)
        elif message.startswith(b"Trace["):
            self._trace_begins(line[header.end :], header)
            return
        elif at == len(line) and (words := read_words(message)):
            kind, values = words
        else:
            self._census.other += 1
            return
        time = self._calendar.klog(header.stamp, header.micros)
        if time is None:
            self._census.unknown["a time that no calendar has"] += 1
            return
        yield from self._told(time, kind, f"{self._source}#{header.process}", values, line)

    def _json(self, line: bytes) -> Iterator[Told]:
        message, time = klog_json.message_of(line), klog_json.time_of(line)
        if message is None or time is None:
            self._census.unknown["JSON without a message or a time"] += 1
            return
        if message.startswith(b"Trace["):
            values = klog_json.pairs_of(line)
            block = read_block(_whole_message(line))
            yield from self._traced(time, self._source, block) if values and block else ()
            return
        kind = MESSAGES.get(message)
        words = None if kind is not None else read_words(message)
        if kind is None and words is None:
            self._census.other += 1
            return
        values = klog_json.pairs_of(line)
        if values is None:
            self._census.unknown["JSON that is cut off or damaged"] += 1
            return
        if words is not None:
            kind = words[0]
            values |= words[1]
        assert kind is not None
        yield from self._told(time, kind, self._source, values, line)

    def _told(self, time: int, kind: Kind, origin: str, values: dict[str, str], line: bytes) -> Iterator[Told]:
        pod = ""
        if kind is Kind.IDENTITY:
            found = _UID.search(line)
            if found is None:
                self._census.other += 1
                return
            pod = f"{found['namespace'].decode()}/{found['name'].decode()}"
            values = {"uid": found["uid"].decode()}
        elif kind not in _OF_NO_POD:
            pod = next((values[key] for key in _POD_KEYS if key in values), "")
            if not POD.fullmatch(pod):
                if kind is Kind.THROTTLED or values.get("type", "pod") != "pod":
                    self._census.other += 1
                else:
                    self._census.unknown["about a Pod of no valid name"] += 1
                return
        self._census.account(kind.value)
        if time < self._newest - _BACK:
            self._census.notes["times that go back"] += 1
        self._newest = time
        yield Told(time, kind, origin, pod, values)

    def _trace_begins(self, text: bytes, header: klog.Header) -> None:
        time = self._calendar.klog(header.stamp, header.micros)
        block = read_begin(text.decode("utf-8", "replace"))
        number = number_of(text)
        if time is None or block is None or number is None:
            self._census.other += 1
            return
        if len(self._blocks) >= _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
            self._census.notes["traces without an end"] += 1
        self._blocks[number] = (time, f"{self._source}#{header.process}", block)

    def _trace_goes_on(self, line: bytes) -> Iterator[Told]:
        self._census.continued += 1
        number = number_of(line)
        opened = self._blocks.get(number) if number else None
        if opened and read_on(opened[2], line[:4096].decode("utf-8", "replace")):
            assert number is not None
            del self._blocks[number]
            yield from self._traced(*opened)

    def _traced(self, time: int, origin: str, block: Block) -> Iterator[Told]:
        pod = f"{block.fields.get('namespace', '')}/{block.fields.get('name', '')}"
        if block.name != "Scheduling" or not POD.fullmatch(pod):
            self._census.other += 1
            return
        self._calendar.learn(block.start)
        self._census.account(Kind.TRACE.value)
        yield Told(time, Kind.TRACE, origin, pod, {}, block)


_PLAIN_BEGINS = frozenset(bytes([byte]) for byte in _LEVELS)


def _whole_message(line: bytes) -> str:
    message = klog_json.message_of(line) or b""
    return klog.unquote(message)
