"""Runs a command of podtrail to its end, in a fork of a process that has loaded it."""

import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.forks import PipedFork

PATIENCE = 600.0
"""Seconds after which it hangs."""


def forked_run(
    *command: str, folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> "subprocess.CompletedProcess[str]":
    """Return what `podtrail` with these arguments printed, and its exit code.

    Raises:
        subprocess.TimeoutExpired: It did not end.
    """
    fork = PipedFork(["podtrail", *command], folder or Path.cwd(), environment)
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.append(fork.stderr.read()), daemon=True)
    reader.start()
    hanging = threading.Timer(PATIENCE, fork.kill)
    hanging.start()
    with fork.stdout, fork.stderr:
        out = fork.stdout.read()
        reader.join()
        code = fork.wait(PATIENCE)
    hanging.cancel()
    return subprocess.CompletedProcess(command, code, out, errors[0])
