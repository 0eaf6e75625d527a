"""A kube-scheduler's log, line by line, to what it tells: never fails, counts what it could not read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from podtrail.reconstruction import klog, klog_json
from podtrail.reconstruction.calendar import Calendar, OffsetStep, offset_text, rfc3339
from podtrail.reconstruction.envelope import Envelope, are_joined, is_klog_json
from podtrail.reconstruction.json_envelope import is_headerless
from podtrail.reconstruction.klog import LONGEST_VALUE
from podtrail.reconstruction.line_counts import LineCounts
from podtrail.reconstruction.lines import LONGEST_LINE
from podtrail.reconstruction.pods_of_lines import OF_NO_POD, is_pod, pod_of, written_out
from podtrail.reconstruction.utiltrace import Block, OpenBlocks, read_block
from podtrail.reconstruction.vocabulary import MESSAGES, Kind, read_words

_OPEN_VALUE = b"=<"
_MOST_HELD = 1 << 16
_BACK = 2_000_000_000
_BEGINS = frozenset((b"I", b"W", b"E", b"F", b"D"))
_OF_OTHERS = re.compile(rb"--(?: (?:Journal|Logs|Boot|Reboot|No entries)\b.*)?|\[[-+]\]\w.*", re.DOTALL)
"""What journalctl and grep write between lines, and the checks of /readyz, which follow a line of klog."""
_FILE_CREATED = re.compile(rb"Log file created at: (\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d)")
_FILE_HEADER: Final = (
    b"Running on machine: ",
    b"Binary: Built with ",
    b"Previous log: ",
    b"Log line format: ",
    b"Flag --",
)
"""What klog writes at the beginning of each file of its own, and a program about flags that are deprecated."""
_PANIC: Final = (b"panic: ", b"fatal error: ")
_STACK = re.compile(rb"panic: |fatal error: |goroutine \d+ [^ ]*\[|\[signal ")
"""The beginning of what Go's runtime writes before a process ends."""
NO_ZONE: Final = "lines whose time zone is not known, read as UTC; --timezone sets it"
_MOST_ORIGINS = 64


@lru_cache(maxsize=64)
def offset_note(offset: int) -> str:
    """Return the note that counts lines whose times are at an offset from UTC."""
    return f"times at {offset_text(offset)}"


class LineMeaning(NamedTuple):
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

    def __init__(
        self,
        source: str,
        near: int,
        counts: LineCounts,
        zone: tzinfo | None = None,
        year: int | None = None,
        *,
        over: bool = False,
    ) -> None:
        """Read the log of `source`, the name of its file.

        Args:
            source: The name of the file.
            near: A moment about which the log was written, Unix nanoseconds.
            counts: Counts its lines.
            zone: The time zone of the log; None: derived, else UTC.
            year: The year of its first line; None: the one nearest to `near`.
            over: Whether its first line was written before `near`, however long before.
        """
        self._source = source
        self.calendar = Calendar(near, zone, year, over=over)
        self._counts = counts
        self._envelope = Envelope()
        self._blocks = OpenBlocks()
        self._held: list[bytes] = []
        self._held_size = 0
        self._held_written: int | None = None
        self._held_writer = source
        self._newest = 0
        self._last: tuple[klog.Line, int | None] | None = None
        """The last line with a header, and when it was written: its time is read when it is asked for."""
        self._written = 0
        self._writer = source
        """The name of the file, and which of its schedulers wrote the line."""
        self._origins: dict[tuple[str, bytes], str] = {}
        self._tried: dict[str, str] = {}
        """The Pod whose attempt began last, by origin."""
        self._panicking = False

    @property
    def holds(self) -> bool:
        """Whether a line waits for the next one, which shows that it is whole."""
        return bool(self._held) or self._envelope.holds

    @property
    def needs_zone(self) -> bool:
        """Whether times were read whose zone nothing gives."""
        return bool(self._counts.notes[NO_ZONE])

    def set_offsets(self, steps: Sequence[OffsetStep]) -> None:
        """Take the offsets of the log's times from UTC, in the order of time."""
        self.calendar.set_steps(steps)

    def end(self) -> Iterator[LineMeaning]:
        """Yield what the lines tell that wait for more: nothing more comes."""
        waiting = self._envelope.end()
        self._correct()
        for unwrapped in waiting:
            yield from self._read(*unwrapped)
        if self._held and (held := self._release()):
            yield held
        self._counts.newest = max(self._counts.newest, self.written_until())

    def written_until(self) -> int:
        """Return when the last line was written: one that tells nothing of attempts shows that the log goes on."""
        last = self.calendar.klog(self._last[0].stamp, self._last[0].micros, self._last[1]) if self._last else None
        return max(self._newest, self._written, last or 0)

    def read(self, lines: Iterable[bytes]) -> Iterator[LineMeaning]:
        """Yield what lines tell, in their order."""
        counts, envelope = self._counts, self._envelope
        for raw in lines:
            counts.lines += 1
            first = raw[:1]
            if len(raw) > LONGEST_LINE:
                counts.unknown["longer than 1 MiB"] += 1
            elif envelope.inside:
                yield from self._unwrap(raw)
            elif first in _BEGINS and b"\x1b" not in raw and (read := klog.read_line(raw)) is not None:
                if self._held and (held := self._release()):
                    yield held
                if (told := self._text(raw, read, None)) is not None:
                    yield told
            elif first == b"{" and is_klog_json(raw) and not are_joined(raw):
                if (told := self._json(raw)) is not None:
                    yield told
            elif first.isdigit() and (whole := envelope.whole_of_runtime(raw)) is not None:
                yield from self._read(*whole, None)
            else:
                yield from self._unwrap(raw)

    def _unwrap(self, raw: bytes) -> Iterator[LineMeaning]:
        """Read a line that does not begin as klog's text does."""
        unwrapped = self._envelope.unwrap(raw, within=bool(self._held))
        released = self._correct()
        if not unwrapped:
            self._counts.continued += 1
        self._counts.lines += max(0, len(unwrapped) - released - 1)
        for one in unwrapped:
            yield from self._read(*one)
        self._writer = self._source

    def _correct(self) -> int:
        """Correct the counts of lines whose end was not known before; return how many are whole after all."""
        envelope = self._envelope
        damaged, released = envelope.damaged, envelope.released
        envelope.damaged = envelope.released = 0
        self._counts.continued -= damaged + released
        if damaged:
            self._counts.unknown["JSON that is cut off or damaged"] += damaged
        return released

    def _read(self, line: bytes, written: int | None, near: int | None, writer: str = "") -> Iterator[LineMeaning]:
        self._written = written or self._written
        self._writer = f"{self._source}|{writer}" if writer else self._source
        if written is not None or near is not None:
            self.calendar.learn(written if written is not None else near or 0)
        read = klog.read_line(line)
        if read is None:
            told = self._otherwise(line, written)
        else:
            if self._held and (held := self._release()):
                yield held
            told = self._text(line, read, written)
        if told is not None:
            yield told

    def _otherwise(self, line: bytes, written: int | None) -> LineMeaning | None:
        """Read a line that has no header of klog."""
        counts = self._counts
        if line[:1] == b"{":
            return self._json(line)
        if line.startswith(b"Trace["):
            return self._trace_goes_on(line)
        if line[:1] == b"\t" or line.startswith(b" >"):
            counts.continued += 1
            if self._held:
                self._hold(line)
        elif not line.strip():
            counts.continued += 1
        elif written is not None and is_headerless(line[:LONGEST_VALUE].decode("utf-8", "replace")):
            return self._headerless(line, written)
        elif found := _FILE_CREATED.match(line):
            year, month, day, clock = (part.decode() for part in found.groups())
            self.calendar.learn(rfc3339(f"{year}-{month}-{day}T{clock}Z") or self.calendar.near)
            counts.other += 1
        elif line.startswith(_FILE_HEADER) or _OF_OTHERS.fullmatch(line):
            counts.other += 1
        elif self._panicking or _STACK.match(line):
            return self._panic(line)
        else:
            counts.unknown["not a line of kube-scheduler"] += 1
        return None

    def _panic(self, line: bytes) -> LineMeaning | None:
        """Read a line of a panic, or of the stacks of goroutines behind it."""
        began, self._panicking = not self._panicking, True
        if not (began and line.startswith(_PANIC)):
            self._counts.continued += 1
            return None
        time = max(self._newest, self.written_until())
        return self._told(time, Kind.PANICKED, self._writer, {}, line)

    def _headerless(self, line: bytes, written: int) -> LineMeaning | None:
        """Read a line that was written with --skip-headers: the envelope has its time."""
        line = b"I0101 00:00:00.000000 1 file.go:1] " + line
        read = klog.read_line(line)
        return self._text(line, read, written, at=written) if read else None

    def _hold(self, line: bytes) -> None:
        if self._held_size < _MOST_HELD:
            self._held.append(line)
            self._held_size += len(line)

    def _release(self) -> LineMeaning | None:
        """Read what was held: a line with values of several lines, told as one of one line."""
        held, self._held, self._held_size = self._held, [], 0
        joined = held[0].removesuffix(b"<") + b'"'
        for line in held[1:]:
            if line.startswith(b" >"):
                joined = joined.removesuffix(b"\\n") + b'"' + line[2:]
                if joined.endswith(_OPEN_VALUE):
                    joined = joined.removesuffix(b"<") + b'"'
            else:
                joined += line[1:].replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b"\\n"
        read = klog.read_line(joined)
        if read is None:
            return None
        writer, self._writer = self._writer, self._held_writer
        told = self._text(joined, read, self._held_written)
        self._writer = writer
        return told

    def _text(self, line: bytes, read: klog.Line, written: int | None, at: int | None = None) -> LineMeaning | None:
        """Read a line of klog; `at` is its time if the header has none."""
        if at is None:
            self._last = read, written
        self._panicking = False
        kind = MESSAGES.get(read.message) if read.pairs else None
        if kind is not None:
            if line.endswith(_OPEN_VALUE):
                self._hold(line)
                self._held_written, self._held_writer = written, self._writer
                return None
            values = klog.pairs_of(line, read.pairs)
        elif read.pairs:
            self._counts.other += 1
            return None
        elif read.message.startswith(b"Trace["):
            self._trace_begins(read, written)
            return None
        elif words := read_words(read.message):
            kind, values = words
        else:
            self._counts.other += 1
            return None
        time = self._time(read, written) if at is None else at
        if time is None:
            self._counts.unknown["a time that no calendar has"] += 1
            return None
        return self._told(time, kind, self._origin(read.process), values, line)

    def _time(self, read: klog.Line, written: int | None) -> int | None:
        time = self.calendar.klog(read.stamp, read.micros, written)
        calendar = self.calendar
        if not calendar.known:
            self._counts.notes[NO_ZONE] += 1
        elif calendar.offset:
            self._counts.notes[offset_note(calendar.offset)] += 1
        return time

    def _origin(self, process: bytes) -> str:
        origin = self._origins.get((self._writer, process))
        if origin is None:
            if len(self._origins) >= _MOST_ORIGINS:
                self._origins.clear()
                self._tried.clear()
            origin = self._origins[self._writer, process] = f"{self._writer}#{process.decode()}"
        return origin

    def _json(self, line: bytes) -> LineMeaning | None:
        message, time = klog_json.message_of(line), klog_json.time_of(line)
        if message is None or time is None:
            self._counts.unknown["JSON without a message or a time"] += 1
            return None
        self._written = time
        if message.startswith(b"Trace["):
            block = read_block(klog.unquote(message.decode("utf-8", "replace")))
            if block is None:
                self._counts.other += 1
                return None
            self.calendar.compare(block.start + block.took, time)  # JSON's own time has a zone
            return self._traced(time, self._writer, block)
        kind = MESSAGES.get(message)
        words = None if kind is not None else read_words(message)
        if kind is None and words is None:
            self._counts.other += 1
            return None
        values = klog_json.pairs_of(line)
        if values is None:
            self._counts.unknown["JSON that is cut off or damaged"] += 1
            return None
        if words is not None:
            kind = words[0]
            values |= words[1]
        assert kind is not None
        return self._told(time, kind, self._writer, values, line)

    def _told(self, time: int, kind: Kind, origin: str, values: dict[str, str], line: bytes) -> LineMeaning | None:
        pod = ""
        if kind is Kind.IDENTITY:
            found = written_out(line)
            if found is None:
                self._counts.other += 1
                return None
            pod, values = found[0], {"uid": found[1]}
        elif kind not in OF_NO_POD:
            pod = pod_of(kind, values, self._tried.get(origin, ""))
            if not is_pod(pod):
                if kind is Kind.THROTTLED or values.get("type", "pod") != "pod":
                    self._counts.other += 1
                else:
                    self._counts.unknown["about a Pod of no valid name"] += 1
                return None
        if kind is Kind.BEGUN:
            self._tried[origin] = pod
        self._counts.account(kind)
        if time < self._newest - _BACK:
            self._counts.notes["times that go back"] += 1
        self._newest = time
        return LineMeaning(time, kind, origin, pod, values)

    def _trace_begins(self, read: klog.Line, written: int | None) -> None:
        time = self.calendar.klog(read.stamp, read.micros, written)
        gave_way = self._blocks.begin(read.message, time, self._origin(read.process))
        if gave_way is None:
            self._counts.other += 1
            return
        if gave_way:
            self._counts.notes["traces without an end"] += 1
        self._counts.continued += 1

    def _trace_goes_on(self, line: bytes) -> LineMeaning | None:
        self._counts.continued += 1
        ended = self._blocks.go_on(line)
        if ended is None:
            return None
        self._counts.continued -= 1  # the block is one line that is used or not
        return self._traced(*ended)

    def _traced(self, time: int, origin: str, block: Block) -> LineMeaning | None:
        pod = f"{block.fields.get('namespace', '')}/{block.fields.get('name', '')}"
        if block.name != "Scheduling" or not is_pod(pod):
            self._counts.other += 1
            return None
        self.calendar.learn(block.start)
        block.start = self.calendar.utc(block.start)
        self._counts.account(Kind.TRACE)
        return LineMeaning(time, Kind.TRACE, origin, pod, {}, block)
