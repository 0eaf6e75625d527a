"""docs/policies: a page for each policy of `tail_sampling`, and their index.

What a page says comes from the policy itself (the docstrings of its module and class, its settings, its lints) and from
an example that is run: `docs/policies/examples/<type>.yaml`, a configuration and traces with what is to become of them.
"""

import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from podtrail.component import registry
from podtrail.config.config_folder import configured_in
from podtrail.config.shape import Shape, field_shapes
from tools.docs.configuration import NAMES, bounds_of, default_of, table, yaml_of
from tools.docs.policy_example import ExampleResult, PolicyExample, read_example, run_example

_HEAD = ("Key", "Type", "Default", "Meaning")
_NOTE = (
    "Written by `./dev docs` from the policy and from [its example](examples/{type}.yaml), "
    "which is run for this page; don't edit it by hand."
)
_INDEX = """\
# Policies

A policy is an item of `policies` in [`tail_sampling`](../configuration.md#tail_sampling): `name`, `type` and, under a
key like the type, its settings. A trace is kept when one of them says yes. Written by
`./dev docs`; don't edit it by hand.
"""
_ORIGINS = {
    "podtrail": ("Of podtrail", "For scheduling attempts, and what the Collector does not have."),
    "collector": ("The Collector's", "They decide as the Collector's `tail_sampling` does, oddities included."),
}


class PolicyType(NamedTuple):
    """A type of policies."""

    name: str
    summary: str
    """What it keeps, in a phrase."""
    block: type[Any]
    """The class of its settings."""


def policy_types() -> Iterator[PolicyType]:
    """Yield every policy type that `tail_sampling` has."""
    factory = registry.find("processor", "tail_sampling")
    assert factory is not None
    (item,) = [below for shape in field_shapes(factory.Config.model_fields["policies"]) for below in shape.below(0)]
    assert item.model is not None
    for key, field, model in _models(item.model):
        if hasattr(model, "create"):
            yield PolicyType(key, field.description or "", model)


def _models(above: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, type[BaseModel]]]:
    for name, field in above.model_fields.items():
        for shape in field_shapes(field):
            if shape.model is not None:
                yield field.alias or name, field, shape.model


def pages(directory: Path) -> Mapping[str, str]:
    """Return all pages of `directory` by file name, made anew from its examples.

    Raises:
        ValueError: a policy has no example, or one that is not as it says.
    """
    with configured_in([directory.absolute().parents[1] / "examples" / "policies"]):
        return _pages(directory)


def _pages(directory: Path) -> Mapping[str, str]:
    made: dict[str, str] = {}
    listed: dict[str, list[PolicyType]] = {origin: [] for origin in _ORIGINS}
    for kind in sorted(policy_types()):
        path = directory / "examples" / f"{kind.name}.yaml"
        if not path.exists():
            raise ValueError(f"{path} is missing: every policy has an example")
        example = read_example(path)
        made[f"{kind.name}.md"] = _page(kind, example)
        listed[example.told.origin].append(kind)
    return {"README.md": _index(listed), **made}


def _index(listed: Mapping[str, list[PolicyType]]) -> str:
    parts = [_INDEX]
    for origin, (title, about) in _ORIGINS.items():
        rows = [(f"[`{kind.name}`]({kind.name}.md)", kind.summary) for kind in listed[origin]]
        parts.append(f"## {title}\n\n{about}\n\n{table(('Policy', 'Keeps'), rows)}")
    return "\n".join(parts)


def _page(kind: PolicyType, example: PolicyExample) -> str:
    outcomes = run_example(example)
    for outcome in outcomes:
        if not outcome.as_expected:
            kept = f"{outcome.kept} of {len(outcome.verdicts)} kept"
            raise ValueError(f"{kind.name}: {outcome.trace.about}: {kept}, not as the example says")
    parts = [f"# {kind.name}\n", f"{_introduction(kind)}\n", *_of_class(kind, example)]
    if example.told.about:
        parts.append(f"{example.told.about.strip()}\n")
    parts += ["## Settings\n", *_tables(kind)]
    parts += ["## Example\n", f"```yaml\n{example.shown}```\n", table(("Trace", "", "Why"), list(map(_row, outcomes)))]
    parts += _warnings(kind, example)
    parts.append(f"{_NOTE.format(type=kind.name)}\n")
    return "\n".join(parts)


def _introduction(kind: PolicyType) -> str:
    """Return what the policy's module says it is, its own name left out."""
    text = cleandoc(sys.modules[kind.block.__module__].__doc__ or "")
    _, colon, rest = text.partition(": ")
    plain = rest if colon and text.startswith("`") else text
    return plain[:1].upper() + plain[1:]


def _of_class(kind: PolicyType, example: PolicyExample) -> Iterator[str]:
    """Yield what the class says that votes with the example's settings."""
    for settings in _settings_of(kind.name, example.processors):
        text = type(kind.block.model_validate(settings).create()).__doc__
        if text:
            yield f"{cleandoc(text)}\n"
        return


def _settings_of(type: str, value: Any) -> Iterator[Any]:
    """Yield the settings of the policies of a type, wherever they stand."""
    if isinstance(value, dict):
        if value.get("type") == type:
            yield value.get(type) or {}
        for below in value.values():
            yield from _settings_of(type, below)
    elif isinstance(value, list):
        for below in value:
            yield from _settings_of(type, below)


def _tables(kind: PolicyType) -> Iterator[str]:
    """Yield a table of the settings, and one of each kind of settings within them."""
    waiting: list[tuple[str, type[BaseModel]]] = [("", kind.block)]
    for title, model in waiting:
        rows = []
        for name, field in model.model_fields.items():
            key = field.alias or name
            path = f"{title}::{key}" if title else key
            kinds = dict.fromkeys(_kind(shape, path, waiting) for shape in field_shapes(field))
            rows.append((f"`{key}`", " or ".join(k for k in kinds if k), default_of(field), field.description or ""))
        if title:
            yield f"### `{title}`\n"
        yield table(_HEAD, rows) if rows else "None.\n"


def _kind(shape: Shape, path: str, waiting: list[tuple[str, type[BaseModel]]]) -> str:
    """Say what stands there; note models that need a table of their own."""
    if shape.type is type(None):
        return ""
    if shape.is_duration:
        return "duration"
    if shape.model is not None:
        if {"name", "type"} <= shape.model.model_fields.keys():
            return "[policy](README.md)"
        if (path, shape.model) not in waiting:
            waiting.append((path, shape.model))
        return f"settings, see `{path}`"
    if get_origin(shape.type) is Literal:
        return ", ".join(f"`{yaml_of(word)}`" for word in get_args(shape.type))
    for index, word, inside in ((0, "list", "[]"), ("key", "map", "::*")):
        below = list(shape.below(index))
        if below:
            kinds = dict.fromkeys(_kind(inner, path + inside, waiting) for inner in below)
            return f"{word} of {' or '.join(kind for kind in kinds if kind)}"
    if shape.type is Any:
        return "anything"
    return NAMES.get(shape.type, getattr(shape.type, "__name__", str(shape.type))) + bounds_of(shape)


def _row(outcome: ExampleResult) -> tuple[str, str, str]:
    trace, verdicts = outcome.trace, outcome.verdicts
    if len(verdicts) == 1:
        (verdict,) = verdicts
        return trace.about, {"sampled": "kept", "dropped": "dropped"}.get(verdict.decision, "not kept"), _why(outcome)
    return trace.about, f"{outcome.kept} of {len(verdicts)} kept", _why(outcome)


def _why(outcome: ExampleResult) -> str:
    """Return the reason of the last that was kept, or else of the last."""
    kept = [verdict for verdict in outcome.verdicts if verdict.decision == "sampled"]
    told = (kept or outcome.verdicts)[-1]
    if told.decision != "not_sampled":
        return f"`{told.policy}`: {told.reason}"
    votes = [vote for vote in told.explained() if vote.why]
    return "; ".join(f"`{vote.policy}`: {vote.why}" for vote in votes) or told.reason


def _warnings(kind: PolicyType, example: PolicyExample) -> Iterator[str]:
    """Yield what `podtrail validate` says about settings that are hardly meant."""
    rows = []
    for warned in example.told.warned:
        found = kind.block.model_validate(warned.settings).lints()
        if not found:
            raise ValueError(f"{kind.name}: nothing is warned of in {warned.settings}")
        texts = [f"`{'::'.join(map(str, path))}`: {text}" if path else text for path, text in found]
        rows.append((f"`{yaml_of(warned.settings)}`", "; ".join(texts)))
    if rows:
        yield "## What `podtrail validate` warns of\n"
        yield table(("Settings", "Warning"), rows)
