"""A terminal's keys one by one, and a screen of its own while they are read."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_REST_OF_LINE = "\x1b[K"
_REST = "\x1b[J"


class FullScreen:
    """A screen that is drawn in place, and the keys that are pressed meanwhile."""

    def draw(self, lines: list[str]) -> None:
        """Draw lines over what was there; nothing flickers."""
        sys.stdout.write(_HOME + f"{_REST_OF_LINE}\n".join(lines) + _REST_OF_LINE + _REST)
        sys.stdout.flush()

    def key(self, seconds: float) -> str:
        """Return the next key that is pressed within so many seconds, else ""."""
        ready, _, _ = select.select([sys.stdin], [], [], max(0.0, seconds))
        if not ready:
            return ""
        # Not through Python's buffer: select does not see what waits in there.
        return (os.read(sys.stdin.fileno(), 64) or b"\x04").decode("utf-8", "replace")


@contextmanager
def full_screen() -> Iterator[FullScreen]:
    """Yield a screen; afterwards the terminal is as it was. A signal that ends is a KeyboardInterrupt meanwhile."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in _ENDING}
    tty.setcbreak(descriptor)
    sys.stdout.write(_ENTER)
    try:
        yield FullScreen()
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
