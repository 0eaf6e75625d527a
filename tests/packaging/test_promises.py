"""Every cell of the promises in docs/reliability.md leads to a test that is there and that CI runs."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
_CELL = re.compile(r"\[[^\]]+\]\[([^\]]+)\]")
_LEADS_TO = re.compile(r'^\[([^\]]+)\]: \.\./(tests/\S+\.py) "(test_\w+)(?:\[([\w-]+)\])?"$', re.MULTILINE)
_KEPT_FROM = r"\b(skip|skipif|xfail|importorskip|mark\.(control_plane|node|kafka|prometheus))\b"


class Proof(NamedTuple):
    """A test that a cell leads to."""

    path: str
    name: str
    case: str = ""
    """One of its parameters' ids, or none."""


def cells(text: str) -> Iterator[tuple[str, str]]:
    """Yield the cells of the table behind the heading, each with the beginning of its row."""
    table = text.split("\n## The promises\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    for about, *row in rows[2:]:
        for cell in row:
            yield about.strip(), cell.strip()


def proofs(text: str) -> dict[str, Proof]:
    """Return what the page's references lead to."""
    return {found[1]: Proof(found[2], found[3], found[4] or "") for found in _LEADS_TO.finditer(text)}


def unproven(text: str) -> list[str]:
    """Return what is wrong with the table: cells without a test, references that lead nowhere."""
    known = proofs(text)
    wrong = []
    for about, cell in cells(text):
        named = _CELL.findall(cell)
        wrong += [f"{about}: nothing proves {cell!r}"] * (not named)
        wrong += [f"{about}: [{name}] leads to no test" for name in named if name not in known]
    return wrong


def skipped(path: Path, name: str) -> list[str]:
    """Return what keeps a test from running in CI on every machine: marks of its own or of its module."""
    tree = ast.parse(path.read_text("utf-8"))
    said = [ast.unparse(node) for node in functions(tree) if node.name == name]
    said += [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node)]
    lines = [line.strip() for each in said for line in each.splitlines()]
    return [line for line in lines if re.search(_KEPT_FROM, line)]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module, those of its classes as well."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def cases(test: object) -> Iterator[str]:
    """Yield the parts of the ids of a test's cases."""
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            ids = mark.kwargs.get("ids") or str
            for case in map(ids, mark.args[1]) if callable(ids) else ids:
                yield from case.split("-")


def is_there(proof: Proof) -> bool:
    test = getattr(import_module(proof.path.removesuffix(".py").replace("/", ".")), proof.name, None)
    return test is not None and proof.case in ("", *cases(test))


def test_each_promise_leads_to_a_test() -> None:
    text = PAGE.read_text("utf-8")
    assert len(list(cells(text))) >= 9 * 4
    assert unproven(text) == []


def test_each_test_of_a_promise_is_there_and_ci_runs_it() -> None:
    wanted = set(proofs(PAGE.read_text("utf-8")).values())
    assert wanted
    assert [proof for proof in wanted if not is_there(proof)] == []
    marks = {proof: skipped(ROOT / proof.path, proof.name) for proof in wanted}
    assert {proof: found for proof, found in marks.items() if found} == {}


PLANTED = """
## The promises

| | nothing | both |
|---|---|---|
| SIGTERM | [all][one] | all |
| SIGKILL | [all][two] | [all][one], [nothing twice][one] |

[one]: ../tests/packaging/test_promises.py "test_each_promise_leads_to_a_test"
"""


def test_a_cell_without_a_test_and_one_that_leads_nowhere_are_found() -> None:
    assert unproven(PLANTED) == ["SIGTERM: nothing proves 'all'", "SIGKILL: [two] leads to no test"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("def test_it():\n    assert True", []),
        ("@pytest.mark.skip\ndef test_it():\n    assert True", ["@pytest.mark.skip"]),
        ("@pytest.mark.skipif(True, reason='')\ndef test_it(): ...", ["@pytest.mark.skipif(True, reason='')"]),
        ("def test_it():\n    pytest.skip('not now')", ["pytest.skip('not now')"]),
        ("@pytest.mark.kafka\nasync def test_it(): ...", ["@pytest.mark.kafka"]),
        ("pytestmark = pytest.mark.xfail\ndef test_it(): ...", ["pytestmark = pytest.mark.xfail"]),
    ],
)
def test_a_test_that_is_kept_from_running_is_found(tmp_path: Path, body: str, found: list[str]) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(f"import pytest\n\n{body}\n", encoding="utf-8")
    assert skipped(path, "test_it") == found
