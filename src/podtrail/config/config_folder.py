"""The folder of a configuration file: modules and files in it are found, after all others, while it is read."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import ModuleType

_folders: ContextVar[Sequence[Path]] = ContextVar("folders of the configuration's files", default=())


@contextmanager
def configured_in(folders: Sequence[Path]) -> Iterator[None]:
    """Let `import_beside` and `file_beside` look in these folders, too."""
    token = _folders.set((*_folders.get(), *folders))
    try:
        yield
    finally:
        _folders.reset(token)


def file_beside(path: str) -> str:
    """Return where a file is: as it is named, or if it isn't there beside the configuration's files."""
    places = (str(folder / path) for folder in _folders.get())
    return path if Path(path).exists() else next((place for place in places if Path(place).exists()), path)


def import_beside(name: str) -> ModuleType:
    """Import a module as Python does; what is found nowhere else is looked for beside the configuration's files."""
    before = set(sys.path)
    added = [folder for folder in dict.fromkeys(map(str, _folders.get())) if folder not in before]
    sys.path.extend(added)
    try:
        return import_module(name)
    finally:
        for folder in added:
            sys.path.remove(folder)
