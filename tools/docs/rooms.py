"""docs/rooms.md: every package with the sentence at its door, and who may import whom, from pyproject.toml."""

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SOURCE_ROOTS = (
    "src",
    "receivers",
    "processors",
    "exporters",
    "extensions",
    "scheduler",
    "instrumentation",
    "kubernetes",
    "webhook",
)
_HEAD = """# Rooms

<!-- written by ./dev docs -->

Every package with the sentence at its door (its docstring's first), then the contracts between them, as `./dev lint`
checks them. How they work together is in [architecture.md](architecture.md).
"""


def page(root: Path) -> str:
    """Return the whole page for a checkout.

    Raises:
        ValueError: a package says nothing at its door.
    """
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return "\n".join([_HEAD, *_rooms(root), "", "## Who may import whom", *_contracts(contracts), ""])


def packages(root: Path) -> Iterator[Path]:
    """Yield every package of a checkout as its path, room after room."""
    for source in SOURCE_ROOTS:
        yield from sorted(path.parent for path in (root / source).rglob("__init__.py"))


def _rooms(root: Path) -> Iterator[str]:
    yield from ("| room | what lives there |", "|---|---|")
    for package in packages(root):
        yield f"| `{package.relative_to(root)}/` | {_sentence(package / '__init__.py')} |"


def _sentence(init: Path) -> str:
    text = ast.get_docstring(ast.parse(init.read_text("utf-8")))
    if not text:
        raise ValueError(f"{init}: a docstring of one sentence is to say what lives in this room")
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _contracts(contracts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for contract in contracts:
        yield from ("", f"**{contract['name']}.**")
        match contract["type"]:
            case "layers":
                where = "".join(f" In `{container}`." for container in contract.get("containers", ()))
                yield f"{where.strip()} A line may import those below it, and no neighbour behind a bar:".strip()
                yield from ("", "```", *contract["layers"], "```")
            case "forbidden":
                but = f", but for {_names(contract['ignore_imports'])}" if "ignore_imports" in contract else ""
                forbidden = _names(contract["forbidden_modules"])
                yield f"{_names(contract['source_modules'])} may not import {forbidden}{but}."
            case "independence":
                yield f"{_names(contract['modules'])}."


def _names(modules: Sequence[str]) -> str:
    return ", ".join(f"`{module}`" for module in modules)
