"""The scheduler's core is told the time and draws from seeds: it knows no event loop, no socket and no clock."""

import ast
from collections.abc import Iterator
from pathlib import Path

import podtrail_scheduler
import pytest

HOME = Path(podtrail_scheduler.__file__).parent
EDGES = {"cluster/kubernetes", "command", "extenders"}
"""What talks to the world."""
FORBIDDEN = {"asyncio", "socket", "threading", "time", "aiohttp", "grpc", "kubernetes"}


def core() -> list[Path]:
    """The modules that are no edge."""
    return [
        path
        for path in sorted(HOME.rglob("*.py"))
        if not any(path.relative_to(HOME).as_posix().startswith(f"{edge}/") for edge in EDGES)
    ]


def imported(path: Path) -> Iterator[str]:
    """The names that a module imports, the first part of each."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("path", core(), ids=lambda path: path.relative_to(HOME).as_posix())
def test_the_core_imports_nothing_that_waits_or_talks(path: Path) -> None:
    assert not FORBIDDEN & set(imported(path))


def test_the_check_sees_what_an_edge_imports() -> None:
    assert "asyncio" in set(imported(HOME / "cluster" / "kubernetes" / "clock.py"))
