"""Puts pydantic's errors into the user's words: what was found, what would be right."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from podtrail.config.duration import format_duration
from podtrail.config.mistakes import Mistake, Mistakes
from podtrail.config.model import Model
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode, descend
from podtrail.config.problem import Path, did_you_mean
from podtrail.config.shape import known_keys, shapes_at

_LONGEST_SHOWN: Final = 60
_QUOTED: Final = re.compile(r"'([^']+)'")


class Complaint(NamedTuple):
    """One complaint about one place."""

    path: Path
    message: str
    hint: str = ""
    at_value: bool = True
    """Whether the value is at fault, not the key."""


_WANTED: Final = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "model_type": "a map of settings",
    "model_attributes_type": "a map of settings",
    "path_type": "a path",
    "none_required": "left empty",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "multiple_of": ("multiple_of", "a multiple of"),
    "finite_number": ("", "finite"),
}
_NOT_BOOLEANS: Final = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false"})


def describe(error: ErrorDetails, model: type[BaseModel], path: Path, root: Node) -> list[Complaint]:
    """Return what a pydantic error on `root`, read as `model`, says about `path`, or about places below."""
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, Mistakes):
        return [_placed(mistake, path, root) for mistake in raised.found]
    return [_described(error, model, path, root)]


def _placed(mistake: Mistake, path: Path, root: Node) -> Complaint:
    """Return a mistake at the value that it is about, or at what was written in its place."""
    there = path
    for key in mistake.path:
        if descend(root, (*there, key)) is None:
            break
        there = (*there, key)
    return _worded(mistake.message, there, root)


def _described(error: ErrorDetails, model: type[BaseModel], path: Path, root: Node) -> Complaint:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return _missing(error, model, path)
    if kind == "extra_forbidden":
        return unknown_key(model, path)
    if kind in _WANTED:
        return _wrong_type(_WANTED[kind], model, path, root)
    if kind in _BOUNDS:
        return Complaint(path, _out_of_bounds(kind, context, model, path) + _but_is(model, path, root))
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(error, path, context, root)
    return Complaint(path, error["msg"].replace("Input should", "must").replace("Value should", "must"))


def unknown_key(model: type[BaseModel], path: Path) -> Complaint:
    """Return what is to be said of a key that `model` does not know."""
    if not path:
        return Complaint(path, "unknown key", "", False)
    key = str(path[-1])
    for shape in shapes_at(model, path[:-1]):
        if shape.model is not None and issubclass(shape.model, Model) and key in shape.model.of_the_collector:
            hint = shape.model.of_the_collector[key]
            return Complaint(path, f"the Collector has {key!r} here, podtrail does not", hint, False)
    known = known_keys(model, path[:-1])
    below = [name for name in known if key in known_keys(model, (*path[:-1], name))]
    hint = f"it stands under {below[0]}" if len(below) == 1 else did_you_mean(key, known, "keys here")
    return Complaint(path, f"unknown key {key!r}", hint, False)


def _missing(error: ErrorDetails, model: type[BaseModel], path: Path) -> Complaint:
    key = str(error["loc"][-1]) if error["loc"] else "?"
    fields = [shape.model.model_fields.get(key) for shape in shapes_at(model, path) if shape.model is not None]
    descriptions = [field.description for field in fields if field is not None and field.description]
    return Complaint((*path, key), "is required", descriptions[0] if descriptions else "", False)


def _wrong_type(wanted: str, model: type[BaseModel], path: Path, root: Node) -> Complaint:
    node = descend(root, path)
    hint = ""
    if wanted == "text" and isinstance(node, ScalarNode) and node.value is not None and not node.origin:
        hint = "quote it"
    elif isinstance(node, ScalarNode) and isinstance(node.value, str):
        if wanted == "true or false" and node.value.lower() in _NOT_BOOLEANS:
            hint = "write true or false, unquoted"
        elif wanted.endswith("number"):
            hint = "remove the quotes" if _is_number(node.value) else ""
    return Complaint(path, f"must be {wanted}{_but_is(model, path, root)}", hint)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _out_of_bounds(kind: str, context: Mapping[str, Any], model: type[BaseModel], path: Path) -> str:
    name, words = _BOUNDS[kind]
    if not name:
        return f"must be {words}"
    bound = context.get(name)
    duration = any(shape.is_duration for shape in shapes_at(model, path))
    return f"must be {words} {format_duration(bound) if duration and isinstance(bound, int) else bound}"


def _but_is(model: type[BaseModel], path: Path, root: Node) -> str:
    """Say what was found, unless it is secret; what came out of the environment is named, not shown."""
    node = descend(root, path)
    secret = any(shape.is_secret for shape in shapes_at(model, path))
    match node:
        case ScalarNode(value=None):
            return ", is empty"
        case ScalarNode(value=bool(value)):
            found, shown = "", str(value).lower()
        case ScalarNode(value=int(value) | float(value)):
            found, shown = "the number ", str(value)
        case ScalarNode(value=str(value)):
            found, shown = "the text ", repr(value)
        case ListNode():
            return ", not a list"
        case MapNode():
            return ", not a map"
        case _:
            return ""
    if secret:
        return ""
    if node.origin:
        return f", not what {node.origin} gives"
    return f", not {found}{shown}" if len(shown) <= _LONGEST_SHOWN else ""


def _literal(_error: ErrorDetails, path: Path, context: Mapping[str, Any], root: Node) -> Complaint:
    expected = str(context.get("expected", ""))
    words = [word.strip("'") or '""' for word in expected.replace(" or ", ", ").split(", ")]
    node = descend(root, path)
    value = node.value if isinstance(node, ScalarNode) else None
    message = f"must be {'one of ' if len(words) > 1 else ''}{', '.join(words)}"
    if node is not None and node.origin:
        return Complaint(path, f"{message}, not what {node.origin} gives")
    if isinstance(value, str):
        close = did_you_mean(value, words)
        return Complaint(path, f"{message}, not {value!r}", close.split("?")[0] + "?" if "?" in close else "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Complaint(path, f"{message}, not the number {value}", "quote it" if str(value) in words else "")
    return Complaint(path, message)


def _unknown_tag(_error: ErrorDetails, path: Path, context: Mapping[str, Any], root: Node) -> Complaint:
    key = str(context.get("discriminator", "type")).strip("'")
    tags = [tag.strip().strip("'") for tag in str(context.get("expected_tags", "")).split(",")]
    where = (*path, key) if descend(root, (*path, key)) is not None else path
    return Complaint(where, f"unknown {key} {str(context.get('tag'))!r}", did_you_mean(str(context.get("tag")), tags))


def _no_tag(_error: ErrorDetails, path: Path, context: Mapping[str, Any], root: Node) -> Complaint:
    key = str(context.get("discriminator", "type")).strip("'")
    if not isinstance(descend(root, path), MapNode):
        return Complaint(path, "must be a map of settings")
    return Complaint((*path, key), "is required", "", False)


def _own_words(error: ErrorDetails, path: Path, context: Mapping[str, Any], root: Node) -> Complaint:
    raised = context.get("error")
    return _worded(str(raised) if raised is not None else error["msg"], path, root)


def _worded(words: str, path: Path, root: Node) -> Complaint:
    """Return what a validator of ours complains about, which may stand further inside.

    That is the key that its text begins with, or what it quotes first. What stands behind a semicolon says what would
    be right.
    """
    message, _, hint = words.partition("; ")
    node = descend(root, path)
    if node is None or isinstance(node, ScalarNode):
        return Complaint(path, message, hint)
    word, _, rest = message.partition(" ")
    if isinstance(node, MapNode) and word in node.entries and rest:
        return Complaint((*path, word), message if rest.startswith("and ") else rest, hint, False)
    quoted = _QUOTED.search(message)
    below, at_value = _find(node, quoted.group(1)) if quoted is not None else ((), False)
    return Complaint((*path, *below), message, hint, at_value)


def _find(node: Node, text: str) -> tuple[Path, bool]:
    """Return the path of the nearest key or value spelled like this, and whether it is a value."""
    waiting: deque[tuple[Path, Node]] = deque([((), node)])
    while waiting:
        path, found = waiting.popleft()
        match found:
            case ScalarNode(value=value) if value == text:
                return path, True
            case MapNode() if text in found.entries:
                return (*path, text), False
            case MapNode():
                waiting.extend(((*path, key), entry.value) for key, entry in found.entries.items())
            case ListNode():
                waiting.extend(((*path, at), item) for at, item in enumerate(found.items))
    return (), False


def _length(_error: ErrorDetails, path: Path, context: Mapping[str, Any], _root: Node) -> Complaint:
    if "min_length" in context:
        least = context["min_length"]
        return Complaint(path, "must not be empty" if least == 1 else f"must have at least {least} entries")
    return Complaint(path, f"must have at most {context.get('max_length')} entries")


_Special = Callable[[ErrorDetails, Path, Mapping[str, Any], Node], Complaint]
_SPECIAL: Final[Mapping[str, _Special]] = {
    "literal_error": _literal,
    "enum": _literal,
    "union_tag_invalid": _unknown_tag,
    "union_tag_not_found": _no_tag,
    "value_error": _own_words,
    "assertion_error": _own_words,
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
}
