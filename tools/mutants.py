"""What can be changed in a module, one small thing at a time, so that a test that bites would notice.

Functions are judged. What a module or class sets is not, which a test could only repeat; neither are texts (strings,
f-strings, lines of the log), nor annotations, decorators and asserts, which the type checker and the reader have.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LOGS = {"log", "logger", "_log", "_logger", "logging"}
_UNJUDGED = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        path: The module's file.
        line: Where the change is, from 1.
        last: The last line of what changes.
        name: What it is, wherever the lines move: `Class.function: before -> after`, numbered if there are several.
        site: Which place in the module, in the order of the text.
        variant: Which of the changes possible there.
    """

    path: Path
    line: int
    last: int
    name: str
    site: int
    variant: int

    def code(self) -> CodeType:
        """Return the module's code with the change made."""
        tree = ast.parse(self.path.read_bytes())
        site = list(_sites(tree))[self.site]
        site.put(list(_variants(site))[self.variant])
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every change of a module, in the order of its text.

    Args:
        path: The module's file.
    """
    seen: dict[str, int] = {}
    for number, site in enumerate(_sites(ast.parse(path.read_bytes()))):
        for variant, changed in enumerate(_variants(site)):
            name = f"{site.scope}: {_shown(site.node)} -> {_shown(changed)}"
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name += f" #{seen[name]}"
            last = site.node.end_lineno or site.node.lineno
            yield Mutant(path, site.node.lineno, last, name, number, variant)


@dataclass
class _Site:
    node: ast.expr | ast.stmt
    field: str
    scope: str
    put: Callable[[ast.AST], None]


def _sites(parent: ast.AST, scope: str = "", in_function: bool = False) -> Iterator[_Site]:
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = f"{scope}.{parent.name}" if scope else parent.name
    for field, value in ast.iter_fields(parent):
        if field in _UNJUDGED or (field == "keywords" and isinstance(parent, ast.ClassDef)):
            continue
        functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        within = in_function or (field == "body" and isinstance(parent, functions))
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _is_unjudged(node):
                continue
            if within and isinstance(node, ast.expr | ast.stmt):
                yield _Site(node, field, scope, _putting(parent, field, index))
            yield from _sites(node, scope, within)


def _putting(parent: ast.AST, field: str, index: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        value = getattr(parent, field)
        if isinstance(value, list):
            value[index] = node
        else:
            setattr(parent, field, node)

    return put


def _is_unjudged(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        root: ast.AST = node.value.func
        while isinstance(root, ast.Attribute | ast.Call):
            if isinstance(root, ast.Attribute) and root.attr in _LOGS:
                return True
            root = root.value if isinstance(root, ast.Attribute) else root.func
        return isinstance(root, ast.Name) and root.id in _LOGS
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _variants(site: _Site) -> Iterator[ast.expr | ast.stmt]:
    if isinstance(site.node, ast.stmt):
        # What a constructor doesn't set, is missed by everything.
        if not (site.scope.endswith("__init__") and isinstance(site.node, ast.Assign | ast.AnnAssign)):
            yield from _statements(site.node)
    else:
        yield from _expressions(site.node)
        tested = site.field in ("test", "ifs") and not isinstance(site.node, ast.Compare | ast.BoolOp | ast.UnaryOp)
        if tested and not isinstance(site.node, ast.Constant):
            yield ast.UnaryOp(ast.Not(), site.node)


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    nothing = ast.copy_location(ast.Pass(), node)
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield nothing
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield nothing
        case ast.AnnAssign(target=ast.Attribute() | ast.Subscript(), value=ast.expr()):
            yield nothing
        case ast.AugAssign(op=operator):
            if type(operator) in _BINARY:
                yield _with(node, op=_BINARY[type(operator)]())
            yield nothing
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _with(node, value=ast.Constant(None))
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=operators):
            for index, operator in enumerate(operators):
                yield _with(node, ops=[*operators[:index], _COMPARE[type(operator)](), *operators[index + 1 :]])
        case ast.BoolOp(op=operator):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(op=operator, left=left) if type(operator) in _BINARY and not isinstance(left, ast.JoinedStr):
            yield _with(node, op=_BINARY[type(operator)]())
        case ast.Call(func=ast.Name(id=called) as function) if called in _CALLED:
            yield _with(node, func=_with(function, id=_CALLED[called]))
        case ast.Constant(value=bool() as value):
            yield _with(node, value=not value)
        case ast.Constant(value=int() | float() as value):
            yield _with(node, value=value + 1)


def _with(node: _Node, **fields: object) -> _Node:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
