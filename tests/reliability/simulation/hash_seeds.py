"""Runs a script in processes in which strings hash otherwise, so that nothing can hang on the order of a set."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def words_by_hash_seed(script: str) -> Sequence[Sequence[str]]:
    """Return the words that a script prints, for each of two seeds of the hashes."""
    return [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=_ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]
