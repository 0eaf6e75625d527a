"""Which files are meant."""

import glob
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path


def matching(include: Iterable[str], exclude: Iterable[str]) -> list[Path]:
    """Return the files that a pattern of `include` and none of `exclude` matches, each once, by name."""
    found = {path for pattern in include for path in glob.glob(pattern, recursive=True)}
    unwanted = list(exclude)
    kept = [Path(name) for name in found if not any(fnmatch(name, pattern) for pattern in unwanted)]
    return sorted(path for path in kept if path.is_file())
