"""Blocks that Kubernetes' utiltrace prints of what took long: at any verbosity, with steps and nested traces.

Only the header has a header of klog; the lines behind it begin with the trace's number. Seconds of a step's time are
always `00` before 1.23, so steps are placed by how long they took.
"""

import re
from dataclasses import dataclass, field

from podtrail.reconstruction.calendar import DAY, length, rfc3339

_MILLISECOND = 1_000_000
_BEGIN = re.compile(
    r'Trace\[(?P<number>\d{1,10})\]: "(?P<name>[^"]*)" (?P<fields>.*?) ?'
    r"\((?P<start>\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d\.\d{3})\) \(total time: (?P<took>\d{1,12})ms\):"
)
_STEP = re.compile(
    r'Trace\[\d+\]: *(?P<nested>\[)?(?:---)?"(?P<name>(?:[^"\\]|\\.)*)" .*?(?P<took>\d{1,12})ms \([^)]*\)\]*'
)
_NUMBER = re.compile(rb"Trace\[(\d{1,10})\]: ")
_END = re.compile(r"Trace\[\d+\]: \[(?P<took>[0-9.]+(?:ns|us|µs|ms|s|m|h)[0-9.hmsnuµ]*)\] \[[^\]]*\] END")
_MOST_STEPS = 64
_MOST_OPEN = 64
_LONGEST_LINE = 4096
_LONGEST = DAY
"""Nanoseconds: what is said to take over a day is a mistake, or meant to harm."""
_MONTHS = {month: f"{at:02}" for at, month in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun"), 1)} | {
    month: f"{at:02}" for at, month in enumerate(("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 7)
}


@dataclass(slots=True)
class Block:
    """One trace. Lengths of time and moments are nanoseconds, as exact as a millisecond."""

    name: str
    fields: dict[str, str]
    start: int
    took: int
    steps: list[tuple[str, int]] = field(default_factory=list)
    """Each with how long it took since the step before; nested traces, and what is in them, are left out."""


def read_begin(text: str) -> Block | None:
    """Return a block from its first line; None when that is none."""
    found = _BEGIN.match(text)
    start = _moment(found["start"]) if found else None
    if found is None or start is None:
        return None
    fields = dict(part.partition(":")[::2] for part in found["fields"].split(",") if ":" in part)
    return Block(found["name"], fields, start, min(int(found["took"]) * _MILLISECOND, _LONGEST))


def number_of(line: bytes) -> bytes | None:
    """Return the number of the trace that a line belongs to."""
    found = _NUMBER.match(line)
    return found[1] if found else None


def read_on(block: Block, text: str) -> bool:
    """Take in a line behind the first; return whether the block ends with it."""
    if end := _END.match(text):
        block.took = length(end["took"]) or block.took
        return True
    step = _STEP.match(text)
    # A nested trace, and its steps, which stand further in.
    if step and not step["nested"] and "]:  " not in text[:24] and len(block.steps) < _MOST_STEPS:
        block.steps.append((step["name"], min(int(step["took"]) * _MILLISECOND, _LONGEST)))
    return False


class OpenBlocks:
    """Blocks whose end has not been read, by their numbers, each with when and by whom it was begun. Bounded."""

    def __init__(self) -> None:
        self._open: dict[bytes, tuple[int, str, Block]] = {}

    def begin(self, message: bytes, time: int | None, origin: str) -> bool | None:
        """Take the first line of a block; return whether an older one had to give way, None if it is no such line."""
        block = read_begin(message[:_LONGEST_LINE].decode("utf-8", "replace"))
        number = number_of(message)
        if time is None or block is None or number is None:
            return None
        gave_way = len(self._open) >= _MOST_OPEN
        if gave_way:
            del self._open[next(iter(self._open))]
        self._open[number] = (time, origin, block)
        return gave_way

    def go_on(self, line: bytes) -> tuple[int, str, Block] | None:
        """Take a line behind the first; return the block that it ends."""
        number = number_of(line)
        opened = self._open.get(number) if number else None
        if number is None or opened is None or not read_on(opened[2], line[:_LONGEST_LINE].decode("utf-8", "replace")):
            return None
        return self._open.pop(number)


def read_block(text: str) -> Block | None:
    """Return a block that is whole, as a log in JSON has it; None when the text is none."""
    first, *more = text.split("\n", 2 * _MOST_STEPS)
    block = read_begin(first)
    if block is not None:
        for line in more:
            read_on(block, line)
    return block


def _moment(text: str) -> int | None:
    """Return the moment of `21-Nov-2026 06:04:54.252`, in UTC."""
    month = _MONTHS.get(text[3:6], "")
    return rfc3339(f"{text[7:11]}-{month}-{text[:2]}T{text[12:]}Z")
