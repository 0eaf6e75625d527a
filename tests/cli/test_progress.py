"""What takes long says on a terminal how far it is, and what does not says nothing."""

import os
import pty
import subprocess
import sys

import pytest

PROGRAM = """
from podtrail.cli.progress import shown
assert list(shown(iter(range(3)), "replay", after={after})) == [0, 1, 2]
"""


@pytest.mark.parametrize(("after", "said"), [(0.0, True), (3600.0, False)])
def test_progress_is_shown_on_a_terminal_once_it_takes_long(after: float, said: bool) -> None:
    terminal, its_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-c", PROGRAM.format(after=after)]
    subprocess.run(command, stderr=its_end, env=environment, check=True, timeout=600)
    os.set_blocking(terminal, False)
    try:
        written = os.read(terminal, 65536).decode()
    except BlockingIOError:
        written = ""
    os.close(its_end)
    os.close(terminal)
    assert ("replay: 0 requests" in written) == said
    assert bool(written) == said
    assert "\x1b[3" not in written


def test_in_a_pipe_nothing_is_said() -> None:
    command = [sys.executable, "-c", PROGRAM.format(after=0.0)]
    assert subprocess.run(command, capture_output=True, check=True, timeout=600).stderr == b""
