"""The steps of a Pod's way."""

from typing import Literal, NamedTuple

StepKind = Literal["request", "wait", "attempt", "cycle", "missing", "node", "container", "moment"]


class WayStep(NamedTuple):
    """One row of the waterfall of a Pod's way."""

    kind: StepKind
    what: str
    """Harmless, in one line."""
    start_unix_nano: int
    took: int | None
    """Nanoseconds; None for what takes no time."""
    trace_id: bytes = b""
    """Of the span that tells it; b"" for a gap."""
    depth: int = 0
    bad: bool = False
    open: bool = False
    """It goes on."""
    attempts: tuple[int, int] | None = None
    """The first and the last attempt that it stands for."""

    @property
    def end(self) -> int:
        """When it was over, Unix nanoseconds."""
        return self.start_unix_nano + (self.took or 0)


def wait(what: str, since: int, until: int, *, open_: bool = False) -> WayStep:
    """Return a gap with its name."""
    return WayStep("wait", what, since, max(0, until - since), open=open_)
