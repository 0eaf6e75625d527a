"""Several lines that are logged as one record: a terminal shows them as lines, JSON has them in one message."""

from collections.abc import Iterable


class LogLines:
    """The argument of a log call whose message is `%s`. Control characters in a line are shown, not obeyed."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)
