"""`python -m tools.figures`: the shape of the tree in the figures at the end of docs/architecture.md, as Markdown.

Lines are physical; a function is measured without its docstring; comments are whole lines.
"""

import ast
import re
import statistics
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.docs.rooms import SOURCE_ROOTS

ROOT = Path(__file__).parents[1]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTIONS)


def _files(*roots: str) -> list[Path]:
    return sorted(path for root in roots for path in (ROOT / root).rglob("*.py") if path.stat().st_size)


def _doc_lines(node: ast.AST) -> int:
    body = getattr(node, "body", [])
    first = body[0] if body else None
    is_doc = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first.end_lineno - first.lineno + 1 if is_doc and first and first.end_lineno else 0


def _functions(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and node.end_lineno:
            yield node.end_lineno - node.lineno + 1 - _doc_lines(node)


def _comments(path: Path) -> int:
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    return sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)


def _row(name: str, paths: Sequence[Path], tests: int) -> str:
    lines = sorted(len(path.read_text("utf-8").splitlines()) for path in paths)
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    sizes = [size for tree in trees for size in _functions(tree)]
    documents = sum(_doc_lines(node) for tree in trees for node in ast.walk(tree) if isinstance(node, _DOCUMENTED))
    comments = sum(map(_comments, paths))
    p90 = lines[len(lines) * 9 // 10]
    total = sum(lines)
    return (
        f"| {name} | {len(lines):,}, {total:,} | {statistics.median(lines):.0f} / {p90} / {lines[-1]} "
        f"| {statistics.median(sizes):.0f}; {sum(size > 50 for size in sizes)} of {len(sizes):,} "
        f"| {100 * comments / total:.1f} + {100 * documents / total:.0f} % | {tests / total:.2f} |"
    )


def _lines(*roots: str) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in _files(*roots))


def main() -> None:
    """Print the table."""
    of_scheduler = ("scheduler", "instrumentation", "kubernetes")
    tests = _lines("tests")
    of_its_tests = _lines(*(f"tests/{name}" for name in of_scheduler))
    others = [root for root in SOURCE_ROOTS if root not in of_scheduler]
    names = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
    words = [name.count("_") for path in _files("tests") for name in names.findall(path.read_text("utf-8"))]
    print("| tree | files, lines | file: median / p90 / longest | function: median; over 50 lines ", end="")
    print("| comments + docstrings | tests : code |\n|---|---|---|---|---|---|")
    print(_row("all", _files(*SOURCE_ROOTS), tests))
    print(_row("pipeline and components", _files(*others), tests - of_its_tests))
    print(_row("scheduler, instrumentation, API server", _files(*of_scheduler), of_its_tests))
    print(f"\n{len(words):,} test functions, their names {statistics.median(words):.0f} words in the median")


if __name__ == "__main__":
    main()
