"""docs/configuration.md: the configuration reference, from the configuration classes.

Every component has a table of its keys; settings that stand inside others have tables of their own below it, and those
that many components share stand once, at the end.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from inspect import cleandoc
from typing import Any, Final, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from podtrail.cli.components import summary
from podtrail.component import Factory
from podtrail.config.collector_components import not_here
from podtrail.config.duration import format_duration
from podtrail.config.feature_gates import KNOWN_GATES
from podtrail.config.model import Model
from podtrail.config.shape import Shape, field_shapes
from podtrail.config.telemetry import TelemetryConfig
from podtrail.pipeline.settings import PIPELINE_KEYS

_SHARED: Final = "podtrail.config."
NAMES: Final[dict[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "text"}
"""What scalars are called."""
_NO_NEWS: Final = re.compile(r"^Settings of `\w+`\.\s*")
_LONGEST_DEFAULT: Final = 60
_SIGNS: Final = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
_INTRODUCTION: Final = """\
# Configuration reference

Written by `./dev docs` from the configuration classes; don't edit it by hand.

A configuration is a YAML file in the OpenTelemetry Collector's format. Keys that are not listed are refused. A duration
is text such as `300ms`, `1.5s`, `2m` or `1h30m`. `${env:NAME}`, `${env:NAME:-default}` and `${file:path}` stand for
what they refer to, `$$` for a dollar sign. A key without a value has its default, a section without one (`watch:`) the
defaults of its keys. Secrets are never printed.
"""


Found = dict[type[BaseModel], str]
"""Models and what their tables are called, in the order in which they were found."""


def reference(factories: Iterable[Factory]) -> str:
    """Return the reference of these components as Markdown."""
    shared: Found = {}
    parts = [_INTRODUCTION]
    kind = ""
    for factory in factories:
        if factory.kind != kind:
            kind = factory.kind
            parts.append(f"## {kind.capitalize()}s\n")
            parts.append(f"Those of the Collector that are not here: {', '.join(not_here(kind))}.\n")
        parts.append(f"### `{factory.type}`\n")
        if factory.aliases:
            parts.append(f"Older names: {', '.join(f'`{name}`' for name in factory.aliases)}.\n")
        parts.append(f"{summary(factory)}\n")
        parts.extend(_sections({factory.Config: ""}, shared))
    parts.append(f"## Connectors\n\nThere are none. The Collector's: {', '.join(not_here('connector'))}.\n")
    parts.append("## Pipelines\n\nUnder `service::pipelines`, each called `traces` or `traces/name`.\n")
    rows = [(f"`{key}`", kind, "", meaning) for key, (kind, meaning) in PIPELINE_KEYS.items()]
    parts.append(table(("Key", "Type", "Default", "Meaning"), rows))
    parts.append("## Telemetry\n\nUnder `service::telemetry`.\n")
    parts.extend(_sections({TelemetryConfig: ""}, shared))
    parts.append("## Shared settings\n")
    parts.extend(_sections(shared, shared))
    parts.append("## Feature gates\n\nSwitched with `--feature-gates=a,-b`; all are off by default.\n")
    parts.append(table(("Gate", "What it does"), [(f"`{name}`", text) for name, text in KNOWN_GATES.items()]))
    return "\n".join(parts).rstrip() + "\n"


def _sections(found: Found, shared: Found) -> Iterator[str]:
    """Yield a table for each model found, and for those found in them, unless they belong to the shared ones."""
    written: set[type[BaseModel]] = set()
    while waiting := [model for model in found if model not in written]:
        for model in waiting:
            written.add(model)
            if found[model]:
                yield f"#### {found[model]}\n"
            about = _NO_NEWS.sub("", cleandoc(vars(model).get("__doc__") or ""))
            if about:
                yield f"{about}\n"
            rows = [_row(key, field, found[model], found, shared) for key, field in _fields(model)]
            yield table(("Key", "Type", "Default", "Meaning"), rows) if rows else "No keys.\n"
            if issubclass(model, Model) and model.of_the_collector:
                yield table(("The Collector has besides", "Here"), list(_elsewhere(model)))


def _elsewhere(model: type[Model]) -> Iterator[tuple[str, str]]:
    """Yield the keys that are not here, those with the same way out in one row."""
    told = {
        key: f"no effect, with a warning; {hint}" if key in model.harmless else hint
        for key, hint in model.of_the_collector.items()
    }
    for words in dict.fromkeys(told.values()):
        yield ", ".join(f"`{key}`" for key, its in told.items() if its == words), words


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _row(key: str, field: FieldInfo, title: str, found: Found, shared: Found) -> tuple[str, ...]:
    above = title.split(" ")[0].strip("`")
    path = f"{above}::{key}" if above and above[0].islower() else key
    kinds = dict.fromkeys(_kind(shape, path, found, shared) for shape in field_shapes(field))
    named = [kind for kind in kinds if kind]
    return f"`{key}`", " or ".join(named), default_of(field), field.description or ""


def _kind(shape: Shape, path: str, found: Found, shared: Found) -> str:
    """Say what stands there; note models for a table of their own."""
    if shape.type is type(None):
        return ""
    if shape.is_secret:
        return "secret text"
    if shape.is_duration:
        return "duration"
    if shape.model is not None:
        return f"settings, see {_noted(shape.model, path, found, shared)}"
    if get_origin(shape.type) is Literal:
        return ", ".join(f"`{yaml_of(word)}`" for word in get_args(shape.type))
    for index, word, inside in (("key", "map", "::*"), (0, "list", "[]")):  # headers may be either
        below = list(shape.below(index))
        if below:
            kinds = dict.fromkeys(_kind(inner, path + inside, found, shared) for inner in below)
            return f"{word} of {' or '.join(kind for kind in kinds if kind)}"
    if shape.type is Any:
        return "anything"
    return NAMES.get(shape.type, getattr(shape.type, "__name__", str(shape.type))) + bounds_of(shape)


def _noted(model: type[BaseModel], path: str, found: Found, shared: Found) -> str:
    if found is shared or (model.__module__.startswith(_SHARED) and model.__module__ != TelemetryConfig.__module__):
        shared.setdefault(model, f"`{model.__name__}`")
        return f"[{shared[model]}](#{model.__name__.lower()})"
    return found.setdefault(model, _titled(model, path)).split(" ")[0]


def _titled(model: type[BaseModel], path: str) -> str:
    """Return the path, and for one of several alternatives what tells it from the others."""
    field = model.model_fields.get("type")
    words = get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()
    return f"`{path}` with `type: {words[0]}`" if len(words) == 1 else f"`{path}`"


def bounds_of(shape: Shape) -> str:
    """Return between which bounds a number must be, with a blank before it; "" without any."""
    signs = [
        f"{sign} {getattr(note, name)}"
        for note in shape.metadata
        for name, sign in _SIGNS.items()
        if isinstance(note, annotated_types.BaseMetadata) and getattr(note, name, None) is not None
    ]
    return f" {', '.join(signs)}" if signs else ""


def default_of(field: FieldInfo) -> str:
    """Return what a key that is not given has, as Markdown."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel) or value is None:
        return ""
    if any(shape.is_duration for shape in field_shapes(field)) and isinstance(value, int):
        return f"`{format_duration(value)}`"
    text = yaml_of(value)
    return f"`{text}`" if isinstance(value, str) or len(text) <= _LONGEST_DEFAULT else "an example"


def yaml_of(value: Any) -> str:
    """Return a default as YAML writes it in one line."""
    match value:
        case bool():
            return str(value).lower()
        case BaseModel():
            return "{}"
        case tuple() | list() | set() | frozenset():
            return f"[{', '.join(map(yaml_of, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}: {yaml_of(below)}" for key, below in value.items()) + "}"
        case "":
            return '""'
        case _:
            return str(value)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table as Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """Return text for a cell of a table: in one line, nothing in it read as a column or as HTML outside of code."""
    pieces = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(piece if at % 2 else piece.replace("<", "\\<") for at, piece in enumerate(pieces))
