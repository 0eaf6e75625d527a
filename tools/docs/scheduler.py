"""The reference in docs/scheduler.md: flags, gates, plugins and configuration, from the code that reads them."""

import dataclasses
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import click
from podtrail_instrumentation.steps import go_duration
from podtrail_scheduler.command.main import main as command
from podtrail_scheduler.configuration import types
from podtrail_scheduler.configuration.args import ARGS
from podtrail_scheduler.configuration.defaults import default_plugins
from podtrail_scheduler.configuration.features import GA, KNOWN, FeatureGates
from podtrail_scheduler.configuration.wire import RAW, key_of

BEGIN = "<!-- reference: written by ./dev docs -->"
END = "<!-- end of reference -->"
_OPAQUE = "object"


def reference() -> str:
    """Return the whole reference in Markdown."""
    return "\n".join([*_flags(), "", *_gates(), "", *_plugins(), "", *_configuration()])


def replaced(document: str) -> str:
    """Return the document with the reference between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document needs {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def _flags() -> Iterator[str]:
    yield from ("### Flags", "", "| Flag | Meaning |", "|---|---|")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            names = ", ".join(f"`{name}`" for name in parameter.opts)
            yield f"| {names} | {_cell(parameter.help or '')}{_shown_default(parameter)} |"


def _shown_default(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return f" Default: `{option.show_default}`."
    return f" Default: `{option.default}`." if option.show_default else ""


def _gates() -> Iterator[str]:
    yield from ("### Feature gates", "", "| Gate | Stage | Default | Needs | Meaning |", "|---|---|---|---|---|")
    for each in KNOWN.values():
        stage = each.stage if each.stage == GA else each.stage.capitalize()
        default = str(each.default).lower() + (" (locked)" if each.locked else "")
        needs = ", ".join(f"`{name}`" for name in each.needs)
        yield f"| `{each.name}` | {stage} | {default} | {needs} | {_cell(each.description)} |"


def _plugins() -> Iterator[str]:
    yield from ("### Default plugins", "", "In the order of their calls.", "", "| Plugin | Weight |", "|---|---|")
    yield from (f"| `{each.name}` | {each.weight or ''} |" for each in default_plugins(FeatureGates()))


def _configuration() -> Iterator[str]:
    yield from ("### Configuration", "")
    yield f"`apiVersion: {types.API_VERSION}`, `kind: {types.KIND}`."
    seen: set[type] = set()
    yield from _struct(types.KubeSchedulerConfiguration, types.KIND, seen)
    for name, kind in ARGS.items():
        yield from _struct(kind, f"{name}: args", seen)


def _struct(kind: type, title: str, seen: set[type]) -> Iterator[str]:
    if kind in seen:
        return
    seen.add(kind)
    yield from ("", f"#### {title}", "", (kind.__doc__ or "").strip(), "")
    yield from ("| Field | Type | Default | Meaning |", "|---|---|---|---|")
    hints = get_type_hints(kind, include_extras=True)
    inner: list[type] = []
    for each in dataclasses.fields(kind):
        hint = hints[each.name]
        yield f"| `{key_of(each)}` | {_type(hint)} | {_default(each.default, hint)} | {_cell(_description(each))} |"
        inner += [found for found in _structs(hint) if found not in inner]
    for found in inner:
        yield from _struct(found, found.__name__, seen)


def _description(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata["description"])


def _type(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        bare, note = get_args(hint)
        if note == RAW or isinstance(note, type):
            return _OPAQUE
        return {"duration": "duration", "[]uint8": "base64"}.get(note) or _type(bare)
    if get_origin(hint) in (Union, UnionType):
        return _type(next(each for each in get_args(hint) if each is not NoneType))
    if get_origin(hint) is tuple:
        return f"list of {_type(get_args(hint)[0])}"
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    return names.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


def _default(value: Any, hint: Any) -> str:
    if value is None or value in ("", (), b"") or dataclasses.is_dataclass(value):
        return ""
    if isinstance(value, tuple):
        return "see below" if not isinstance(value[0], str) else ", ".join(f"`{each}`" for each in value)
    if _type(hint) == "duration":
        return f"`{go_duration(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _structs(hint: Any) -> Iterator[type]:
    if get_origin(hint) is Annotated:
        return
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for each in get_args(hint):
        yield from _structs(each)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
