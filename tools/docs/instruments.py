"""Finds every metric that the code makes: each call of `counter`, `gauge` and `histogram` with a name and a help.

Names are put together in the code, from constants, loops and parameters; they are put together here in the same way.
A call that can't be followed is an error: a metric that the reference lacks is found before anybody misses it.
"""

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TREES: Final = ("src", "receivers", "processors", "exporters", "extensions", "webhook")
_KINDS: Final = ("counter", "gauge", "histogram")
_APART: Final = ("src/podtrail/component/metrics.py",)
"""Where instruments are passed on, not made."""
_PARAMETERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {"publish": {"unit": ("traces", "spans", "bytes")}}
"""Parameters that name what is counted, and come from another module: by function."""


@dataclass(frozen=True, slots=True)
class Described:
    """A metric as the code makes it."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    where: str
    """The module that makes it, from the root of the repository."""


def described(root: Path) -> list[Described]:
    """Return all metrics of the code below `root`, each once, in the order of modules and lines.

    Raises:
        ValueError: a call could not be followed, or two metrics of one name are not the same.
    """
    found: dict[str, Described] = {}
    for path in sorted(path for tree in TREES for path in (root / tree).rglob("*.py")):
        where = str(path.relative_to(root))
        if where in _APART:
            continue
        for one in _of_module(ast.parse(path.read_text("utf-8")), where):
            first = found.setdefault(one.name, one)
            if first.labels != one.labels or first.kind != one.kind:
                raise ValueError(f"{one.name} is made in two ways, in {first.where} and {one.where}")
    return list(found.values())


def _of_module(tree: ast.Module, where: str) -> Iterator[Described]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _kind(node)]
    if not calls:
        return
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names = where.removesuffix(".py").split("/")
    module = importlib.import_module(".".join(names[1:]).removesuffix(".__init__"))
    for call in calls:
        kind = _kind(call)
        places = ("name", "help", "bounds", "labels") if kind == "histogram" else ("name", "help", "labels")
        given = dict(zip(places, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        try:
            for names_there in _bound(call, dict(vars(module)), parents):
                labels = _value(given["labels"], names_there) if "labels" in given else ()
                name, help = _value(given["name"], names_there), _value(given["help"], names_there)
                yield Described(name, kind, help, tuple(labels), where)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{where}:{call.lineno}: can't tell which metric this is: {error}") from error


def _kind(call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name if name in _KINDS and len(call.args) >= 2 else ""


def _bound(node: ast.AST, outside: dict[str, Any], parents: Mapping[ast.AST, ast.AST]) -> Iterator[dict[str, Any]]:
    """Return what names mean at a node, once for each round of the loops around it."""
    around = parents.get(node)
    if around is None:
        yield outside
        return
    for names in _bound(around, outside, parents):
        match around:
            case ast.For(target=target, iter=rounds):
                yield from _rounds(target, rounds, names)
            case ast.DictComp(generators=[loop]) | ast.GeneratorExp(generators=[loop]) if node is not loop:
                yield from _rounds(loop.target, loop.iter, names)
            case ast.FunctionDef():
                for parameters in _parameters(around, names, parents):
                    yield names | parameters | _assigned(around, names | parameters)
            case _:
                yield names


def _parameters(
    function: ast.FunctionDef, names: dict[str, Any], parents: Mapping[ast.AST, ast.AST]
) -> Iterator[dict[str, Any]]:
    """Return what a function of this module is called with, call by call, as far as that is constant."""
    module = next(node for node in parents.values() if isinstance(node, ast.Module))
    calls = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
    ]
    arguments = [argument.arg for argument in function.args.args]
    for call in calls:
        for there in _bound(call, names, parents):
            yield {name: _value_or_none(value, there) for name, value in zip(arguments, call.args, strict=False)}
    if not calls:
        known = _PARAMETERS.get(function.name, {})
        yield from ({name: value} for name, values in known.items() for value in values)
        if not known:
            yield {}


def _assigned(function: ast.FunctionDef, names: dict[str, Any]) -> dict[str, Any]:
    """Return what is assigned in a function and constant."""
    found: dict[str, Any] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for each, constant in pairs:
                if isinstance(each, ast.Name) and (known := _value_or_none(constant, names | found)) is not None:
                    found[each.id] = known
    return found


def _rounds(target: ast.expr, rounds: ast.expr, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    elements = rounds.elts if isinstance(rounds, ast.Tuple) else None
    if isinstance(rounds, ast.Name) and isinstance(names.get(rounds.id), tuple):
        elements = [ast.Constant(value) for value in names[rounds.id]]
    if elements is None:
        yield names
        return
    for element in elements:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = element.elts if isinstance(target, ast.Tuple) and isinstance(element, ast.Tuple) else [element]
        pairs = zip(targets, values, strict=True)
        yield names | {each.id: _value_or_none(value, names) for each, value in pairs if isinstance(each, ast.Name)}


def _value_or_none(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return _value(node, names)
    except (KeyError, TypeError):
        return None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of constants put together.

    Raises:
        KeyError: a name is not known.
        TypeError: it is more than that.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            parts = [
                _value(one.value, names) if isinstance(one, ast.Starred) else [_value(one, names)] for one in elements
            ]
            return tuple(value for part in parts for value in part)
        case ast.JoinedStr(values=values):
            return "".join(str(_value(value, names)) for value in values)
        case ast.FormattedValue(value=value):
            return _value(value, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, names) + _value(right, names)
        case ast.Call(func=ast.Attribute(value=text, attr="title"), args=[]):
            return _value(text, names).title()
    raise TypeError(f"{ast.unparse(node)} is no constant")
