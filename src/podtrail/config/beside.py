"""Modules that lie beside a configuration file: found after all others, and only while one is asked for."""

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
    """Let `import_beside` look in these folders, too."""
    token = _folders.set((*_folders.get(), *folders))
    try:
        yield
    finally:
        _folders.reset(token)


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
