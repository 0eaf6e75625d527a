"""How times, lengths of time and foreign text are put in words, the same on page and terminal."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

DECISION_WORDS: Final[Mapping[str, str]] = {"sampled": "kept", "not_sampled": "not kept", "dropped": "dropped"}
"""A sampler's decision, as people are told of it."""
VOTE_WORDS: Final[Mapping[str, str]] = {"sampled": "yes", "not_sampled": "no", "dropped": "drop"}
"""What a policy said."""

_SECOND = 1_000_000_000
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def duration(nanoseconds: int | None) -> str:
    """Return a length of time in at most two units: `800 ns`, `22.4 µs`, `8.1 ms`, `4.31 s`, `4m 12s`; `-` for None."""
    if nanoseconds is None:
        return "-"
    if nanoseconds == 0:
        return "0 s"
    if nanoseconds < 0:
        return "-" + duration(-nanoseconds)
    if nanoseconds < 60 * _SECOND:
        for size, unit in ((_SECOND, "s"), (1_000_000, "ms"), (1_000, "µs")):
            # 0.9995 of a unit would be written as 1,000 of the smaller one.
            if nanoseconds >= size * 0.9995:
                return f"{nanoseconds / size:.3g} {unit}"
        return f"{nanoseconds} ns"
    rest = nanoseconds // _SECOND
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0"))


def ago(then: int | None, now: int) -> str:
    """Return how long ago a moment was, in whole seconds or more; `never` for None."""
    if then is None:
        return "never"
    past = (now - then) // _SECOND * _SECOND
    return "just now" if past <= 0 else f"{duration(past)} ago"


def moment(unix_nano: int) -> datetime:
    """Return a moment in UTC; the beginning of 1970 for one that no calendar has."""
    try:
        return datetime.fromtimestamp(unix_nano // _SECOND, UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def clock(unix_nano: int | None) -> str:
    """Return a moment as a clock shows it, in UTC; `-` for None."""
    return "-" if unix_nano is None else f"{moment(unix_nano):%H:%M:%S}"


def stamp(unix_nano: int) -> str:
    """Return a moment with its date, as ISO 8601 has it."""
    return f"{moment(unix_nano):%Y-%m-%dT%H:%M:%SZ}"


def several(count: int, what: str) -> str:
    """Return a number of things in words: `1 attempt`, `1,204 attempts`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def visible(text: str) -> str:
    r"""Return text from elsewhere in one line without power over a terminal or the direction of reading.

    Control, format (bidirectional, zero width), surrogate and unassigned characters are shown as `\x1b` or `\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shell_word(text: str) -> str:
    """Return text from elsewhere as one word of a command to be copied: quoted where a shell would act on it."""
    return shlex.quote(visible(text))


def clip(text: str, width: int = 200) -> str:
    """Return text with its middle left out where it is longer than `width` characters."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
