"""Files and folders of a configuration that another podtrail has locked, and names that this one may take instead."""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from podtrail.config.problem import Path as Keys
from podtrail.pipeline.loops import LocksFolders, WritesFiles
from podtrail.pipeline.settings import Settings


class HeldFile(NamedTuple):
    """A file or a folder that another process has."""

    keys: Keys
    """Of the configuration, where it is named."""
    path: Path
    lock: str
    """The name of the file in the folder that is locked; "" for a file, which is locked itself."""

    def __str__(self) -> str:
        what = "is in use by another process" if self.lock else "another process writes to it"
        return f"{'::'.join(map(str, self.keys))}: can't use {self.path}: {what}"


def held_files(settings: Settings) -> Sequence[HeldFile]:
    """Return what another process has locked."""
    return [one for one in _named(settings) if _is_locked(one.path / one.lock if one.lock else one.path)]


def own_names(held: Sequence[HeldFile]) -> str:
    """Return the options of `podtrail run` that give this one files of its own."""
    return " ".join(f"--set {'::'.join(map(str, one.keys))}={json.dumps(str(_free_name(one)))}" for one in held)


def _named(settings: Settings) -> Iterator[HeldFile]:
    for id in dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.exporters):
        config = settings.exporters[id].config
        for key, path in config.writes().items() if isinstance(config, WritesFiles) else ():
            yield HeldFile(("exporters", id, key), Path(path), "")
    for id in settings.service.extensions:
        config = settings.extensions[id].config
        if isinstance(config, LocksFolders):
            key, path, lock = config.locks()
            yield HeldFile(("extensions", id, key), Path(path), lock)


def _free_name(held: HeldFile) -> Path:
    """Return the first name with a number that nothing has."""
    name, dot, ending = (held.path.name, "", "") if held.lock else held.path.name.partition(".")
    names = (held.path.with_name(f"{name}-{number}{dot}{ending}") for number in count(2))
    return next(path for path in names if not path.exists())


def _is_locked(path: Path) -> bool:
    """Tell whether another process has a file; the start itself says what else is wrong with it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a FIFO would wake who waits for a reader
            return False
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(handle)
    return False
