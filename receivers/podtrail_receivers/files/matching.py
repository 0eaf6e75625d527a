"""Which files are meant."""

import glob
import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path, PurePath


def matching(include: Iterable[str], exclude: Iterable[str]) -> list[Path]:
    """Return the files that a pattern of `include` and none of `exclude` matches, each once, by name."""
    found = {path for pattern in include for path in glob.glob(pattern, recursive=True)}
    unwanted = list(exclude)
    kept = [Path(name) for name in found if not any(fnmatch(name, pattern) for pattern in unwanted)]
    return sorted(path for path in kept if path.is_file())


def means(pattern: str, path: str) -> bool:
    """Say whether a pattern means a file, which need not be there. Looks at no directory."""
    if "\0" in pattern + path:
        return False
    if not glob.has_magic(pattern):
        return os.path.realpath(pattern) == os.path.realpath(path)
    whole, name = os.path.abspath(pattern), os.path.abspath(path)
    return fnmatch(name, whole.replace("**/", "*")) if "**" in pattern else PurePath(name).match(whole)
