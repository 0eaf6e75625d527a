"""What a parser under fuzzing is: how it is fed, what must hold, and what its inputs are made of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Parser:
    """One parser. Each module of `tools.fuzz.parsers` has one, `PARSER`."""

    check: Callable[[bytes], None]
    """Feeds it. AssertionError when a promise is broken; the parser's own errors are caught, others are findings."""
    seeds: Callable[[], Iterable[bytes]]
    """Inputs that it takes, small ones, to begin with."""
    mutate: Callable[[bytes, Random], bytes] | None = None
    """Changes an input so that its form stays whole, mostly."""
    words: Sequence[bytes] = ()
    """What often stands in inputs."""
    largest: int = 4096
    """Bytes of an input."""
