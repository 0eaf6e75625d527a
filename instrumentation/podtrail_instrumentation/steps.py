"""An operation that remembers its steps and tells them when it took long, as Kubernetes' utiltrace does.

    Trace[389521860]: "Scheduling" namespace:default,name:ok2 (21-Nov-2026 06:04:54.252) (total time: 154ms):
    Trace[389521860]: ---"Computing predicates done" 154ms (06:04:54.407)
    Trace[389521860]: [154.683192ms] [154.683192ms] END

The root is told when it reached its threshold. A step is told when it took at least its share: the threshold divided
by the number of steps plus one, thresholds of nested operations taken off first, but never less than a quarter of the
whole. A nested operation that reached its own threshold stands in brackets. Where everything is asked for (klog's V(4))
short steps and nested operations are told as well. Times are UTC.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

Fields = Mapping[str, str | bool | int | float | Sequence[str] | Sequence[int]]

_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND


class Step(NamedTuple):
    """A moment within an operation: what is done by then."""

    name: str
    at: int
    fields: Fields


class Operation:
    """Something that takes time; all times in unix nanoseconds, `ended` and `threshold` known once it is over."""

    __slots__ = ("ended", "fields", "items", "name", "started", "threshold")

    def __init__(self, name: str, fields: Fields, started: int) -> None:
        self.name = name
        self.fields = fields
        self.started = started
        self.ended: int | None = None
        self.threshold: int | None = None
        self.items: list[Step | Operation] = []

    def was_long(self) -> bool:
        """Whether it is over and reached its threshold."""
        return self.ended is not None and self.ended - self.started >= (self.threshold or 0)


def describe(operation: Operation, number: int, *, everything: bool = False) -> list[str]:
    """The texts to log about `operation` (over, its nested ones perhaps not), each of several lines.

    One text when it was long; otherwise one for each outermost nested operation that was. `number` tells the lines
    of one text from those of another.
    """
    if not operation.was_long():
        nested = (item for item in operation.items if isinstance(item, Operation))
        return [text for item in nested for text in describe(item, number, everything=everything)]
    assert operation.ended is not None
    total = operation.ended - operation.started
    head = f"Trace[{number}]: {_quoted(operation.name)} {_fields(operation.fields)}"
    lines = [f"{head}({_stamp(operation.started, '%d-%b-%Y %H:%M:%S')}) (total time: {total // _MILLISECOND}ms):"]
    lead = f"Trace[{number}]: "
    _steps(operation, lead, None if everything else _share(operation), lines)
    lines.append(f"{lead}[{go_duration(total)}] [{go_duration(total)}] END")
    return ["\n".join(lines)]


def _steps(operation: Operation, lead: str, share: int | None, lines: list[str]) -> None:
    """Appends the lines of what happened inside and took at least `share`; None: of everything."""
    last = operation.started
    for item in operation.items:
        if isinstance(item, Step):
            if share is None or item.at - last >= share:
                lines.append(f"{lead}---{_summary(item.name, item.fields, item.at - last, item.at)}")
            last = item.at
        else:
            _nested(item, lead, share, lines)
            last = last if item.ended is None else item.ended


def _nested(operation: Operation, lead: str, share: int | None, lines: list[str]) -> None:
    if operation.ended is None or (share is not None and not operation.was_long()):
        for item in operation.items:
            if isinstance(item, Operation):
                _nested(item, lead, share, lines)
        return
    took = operation.ended - operation.started
    lines.append(f"{lead}[{_summary(operation.name, operation.fields, took, operation.started)}")
    own = share if share is None or operation.threshold is None else _share(operation)
    _steps(operation, lead + " ", own, lines)
    lines[-1] += "]"


def _share(operation: Operation) -> int:
    whole = operation.threshold or 0
    rest, parts = whole, len(operation.items) + 1
    for item in operation.items:
        if isinstance(item, Operation) and item.threshold is not None:
            rest -= item.threshold
            parts -= 1
    if rest < whole // 4:
        rest, parts = whole // 4, len(operation.items) + 1
    return rest // parts


def _summary(name: str, fields: Fields, took: int, at: int) -> str:
    return f"{_quoted(name)} {_fields(fields)}{took // _MILLISECOND}ms ({_stamp(at, '%H:%M:%S')})"


def _fields(fields: Fields) -> str:
    return ",".join(f"{key}:{value}" for key, value in fields.items()) + " " if fields else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _stamp(time: int, form: str) -> str:
    return f"{datetime.fromtimestamp(time // _SECOND, UTC).strftime(form)}.{time % _SECOND // _MILLISECOND:03d}"


def go_duration(nanoseconds: int) -> str:
    """A duration as Go prints it: `154.683192ms`, `1m0.5s`, `2h0m0s`."""
    if nanoseconds < 0:
        return "-" + go_duration(-nanoseconds)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", _MILLISECOND)):
        if nanoseconds < size * 1_000:
            return f"{_decimal(nanoseconds, size)}{unit}" if nanoseconds else "0s"
    minutes, rest = divmod(nanoseconds, _MINUTE)
    hours, minutes = divmod(minutes, 60)
    lead = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{lead}{_decimal(rest, _SECOND)}s"


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    digits = f"{part:0{len(str(unit)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
