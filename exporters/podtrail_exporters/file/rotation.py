"""Rotated files: their names, and which of them go."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_COMPRESSED = (".gz", ".zst")
_STAMP = "%Y-%m-%dT%H-%M-%S"
_STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}")


def split_name(path: Path) -> tuple[str, str]:
    """Return a file's name before and from its suffixes on: `data` and `.jsonl.zst`."""
    name, end = path.name, ""
    if path.suffix in _COMPRESSED:
        name, end = path.stem, path.suffix
    suffix = Path(name).suffix
    return name.removesuffix(suffix), suffix + end


def backup_path(path: Path, now: datetime) -> Path:
    """Return a name for a file to be set aside at `now`, as in `data-2022-09-14T05-02-14.173.json`; no such file is."""
    stem, suffixes = split_name(path)
    while True:
        stamp = f"{now:{_STAMP}}.{now.microsecond // 1000:03d}"
        backup = path.with_name(f"{stem}-{stamp}{suffixes}")
        if not backup.exists():
            return backup
        now += timedelta(milliseconds=1)


def backups(path: Path) -> Iterator[tuple[datetime, Path]]:
    """Yield a file's rotated predecessors with the time in their names (no time zone), newest first."""
    stem, suffixes = split_name(path)
    found = []
    for other in path.parent.glob(f"{_literally(stem)}-*{_literally(suffixes)}"):
        stamp = other.name[len(stem) + 1 : len(other.name) - len(suffixes)]
        if _STAMPED.fullmatch(stamp):
            found.append((datetime.strptime(stamp, f"{_STAMP}.%f"), other))  # noqa: DTZ007 - as the name has it
    yield from sorted(found, reverse=True)


def expired(path: Path, *, now: datetime, max_days: int, max_backups: int) -> Iterator[Path]:
    """Yield the predecessors that are too many or too old; 0 is no limit."""
    oldest = now.replace(tzinfo=None) - timedelta(days=max_days)
    for position, (at, backup) in enumerate(backups(path)):
        if (max_backups and position >= max_backups) or (max_days and at < oldest):
            yield backup


def now_for_names(*, localtime: bool) -> datetime:
    """Return the time that names are made of."""
    return datetime.now(UTC).astimezone() if localtime else datetime.now(UTC)


def _literally(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
