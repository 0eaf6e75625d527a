import ast
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tools.docs.rooms import SOURCE_ROOTS

ROOT = Path(__file__).parents[2]
FILES = sorted(file for room in SOURCE_ROOTS for file in (ROOT / room).rglob("*.py"))

PROSE = re.compile(
    r"(?:^|[.;:] |\n)(?:[Rr]aises\b|Raise `?[A-Z]|`?[A-Z]\w*Error`? (?:when|for|if|unless|says|names|of)\b)"
)
TIMES = re.compile(r"(?:^|_)(?:delay|duration|interval|period|timeout|ttl)$", re.IGNORECASE)
UNITS = re.compile(r"\b(?:ns|ms|(?:nano|milli|micro)?seconds?|minutes?)\b", re.IGNORECASE)
HELP = ("command", "group", "validator", "overload")
"""Decorators of functions whose docstring is a command's help, or that pydantic calls."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[Function, str]]:
    """Yield the public functions with the docstring of what they are in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from functions(node, ast.get_docstring(node) or "")
        elif isinstance(node, Function) and (not node.name.startswith("_") or node.name == "__init__"):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if not any(word in decorators for word in HELP):
                yield node, owner


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names of the exceptions that a function raises itself and does not catch."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(inner, ast.Raise) and inner.exc is not None:
            name = ast.unparse(inner.exc.func if isinstance(inner.exc, ast.Call) else inner.exc).split(".")[-1]
            if name[0].isupper() and name not in caught | {"AssertionError", "NotImplementedError"}:
                yield name
        elif isinstance(inner, ast.Try):
            here = {name for each in inner.handlers for name in re.findall(r"\w+", ast.unparse(each.type or each))}
            if "Exception" not in here:
                yield from raised(ast.Module(inner.body, []), caught | here)
            for after in (*inner.handlers, *inner.orelse, *inner.finalbody):
                yield from raised(ast.Module([after], []) if isinstance(after, ast.stmt) else after, caught)
        else:
            yield from raised(inner, caught)


def is_number(annotation: ast.expr | None) -> bool:
    return annotation is not None and re.fullmatch(r"(int|float)( \| None)?", ast.unparse(annotation)) is not None


def complaints(file: Path) -> Iterator[str]:
    """Yield what a file's docstrings leave out."""
    tree = ast.parse(file.read_text())
    for function, owner in functions(tree):
        where = f"{file}:{function.lineno}: {function.name}"
        text, _, section = (ast.get_docstring(function) or "").partition("\nRaises:\n")
        if text:
            for name in sorted(set(raised(function))):
                if f"{name}:" not in section:
                    yield f"{where} raises {name}: say so under Raises:"
        if PROSE.search(text):
            yield f"{where}: what is raised belongs under Raises:"
        told = f"{text} {owner} {ast.get_docstring(tree)}"
        for argument in [*function.args.args, *function.args.kwonlyargs]:
            if is_number(argument.annotation) and TIMES.search(argument.arg) and not UNITS.search(told):
                yield f"{where}: {argument.arg} has no unit"
    yield from unitless(tree, "", file)


def unitless(node: ast.Module | ast.ClassDef, outer: str, file: Path) -> Iterator[str]:
    """Yield the public constants and fields whose name says a time, and nobody its unit."""
    known = f"{outer} {ast.get_docstring(node) or ''}"
    for field, following in zip_longest(node.body, node.body[1:]):
        if isinstance(field, ast.ClassDef):
            yield from unitless(field, known, file)
            continue
        match field:
            case ast.AnnAssign(target=ast.Name(name), annotation=kind) if is_number(kind):
                pass
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(int() | float()) | ast.BinOp()):
                pass
            case _:
                continue
        told = ast.unparse(following) if isinstance(following, ast.Expr) else ""
        described = ast.unparse(field).replace(name, "")  # a Field's description stands in it
        if not name.startswith("_") and TIMES.search(name) and not UNITS.search(f"{known} {told} {described}"):
            yield f"{file}:{field.lineno}: {name} has no unit"


def test_docstrings_say_what_is_raised_and_in_which_unit_times_are() -> None:
    assert [complaint for file in FILES for complaint in complaints(file)] == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('def f():\n    """Does."""\n    raise KeyError(1)', "f raises KeyError"),
        ('def f():\n    """Does. KeyError when it is none."""', "belongs under Raises:"),
        ('def f():\n    """Does. Raises KeyError."""', "belongs under Raises:"),
        ('def f(timeout: float):\n    """Does."""', "timeout has no unit"),
        ('class C:\n    """Is."""\n    poll_interval: int = 3', "poll_interval has no unit"),
        ("POLL_INTERVAL = 3", "POLL_INTERVAL has no unit"),
    ],
)
def test_what_is_left_out_is_found(source: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(source)

    assert [each for each in complaints(tmp_path / "room.py") if complaint in each]
