"""`podtrail print-config`: what the sources come to, ready to be read again; secrets only on request."""

from collections.abc import Mapping
from typing import Any, Literal

import click
import yaml
from pydantic import BaseModel

from podtrail.cli.options import config_options, reporting
from podtrail.config import Document
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode, plain
from podtrail.config.scalars import read_plain
from podtrail.config.secret_keys import REDACTED, is_secret_key, redacted
from podtrail.config.shape import Shape
from podtrail.config.telemetry import TelemetryConfig
from podtrail.pipeline.settings import Settings, read_settings

Classes = Mapping[tuple[str, str], type[BaseModel]]
"""The configuration class of every component, by section and id."""


@click.command("print-config")
@config_options()
@click.option(
    "--mode",
    type=click.Choice(["redacted", "unredacted"]),
    default="redacted",
    show_default=True,
    help="Whether headers, keys and other secrets are shown.",
)
def command(
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    mode: Literal["redacted", "unredacted"],
) -> None:
    """Print the configuration as YAML: all sources merged, defaults left out, secrets redacted.

    References to files and to variables of the environment are resolved only with --mode unredacted.
    """
    with reporting():
        document = Document.load(config, assignments)
        settings = read_settings(document, gates)
    classes = _classes(settings) if mode == "redacted" else None
    click.echo(to_yaml(document, classes), nl=False)


def to_yaml(document: Document, classes: Classes | None = None) -> str:
    """Return the document as YAML that reads the same.

    Args:
        document: What to write.
        classes: Declare what is a secret: it is redacted, and so is what looks like one; references to files and to
            variables of the environment are shown as such. None: everything is shown.
    """
    values = _plain(document.root) if classes is None else _values(document.root, classes)
    return yaml.dump(values, Dumper=_ConfigDumper, sort_keys=False, allow_unicode=True, width=120)


def _classes(settings: Settings) -> Classes:
    sections = settings.sections.items()
    classes = {(name, id): one.factory.Config for name, section in sections for id, one in section.items()}
    return classes | {("service", "telemetry"): TelemetryConfig}


def _values(root: MapNode, classes: Classes) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for section, entry in root.entries.items():
        if isinstance(entry.value, MapNode):
            shown[section] = {
                id: _redact(below.value, [Shape(classes[section, id])] if (section, id) in classes else [])
                for id, below in entry.value.entries.items()
            }
        else:
            shown[section] = _redact(entry.value, [])
    return shown


def _plain(node: Node) -> Any:
    """Return the plain value, with dollar signs written so that they are read back as such."""
    match node:
        case ScalarNode(value=str(text)):
            return _escaped(text)
        case ScalarNode():
            return node.value
        case ListNode():
            return [_plain(item) for item in node.items]
        case MapNode():
            return {key: _plain(entry.value) for key, entry in node.entries.items()}


def _escaped(text: str) -> str:
    return text.replace("$", "$$") if "${" in text or "$$" in text else text


def _redact(node: Node, shapes: list[Shape], key: str = "") -> Any:
    """Return the plain value without secrets; `key`: what says whether it is one."""
    match node:
        case ScalarNode(value=None | bool()):
            return node.value
        case ScalarNode() if is_secret_key(key) or any(shape.is_secret for shape in shapes):
            return REDACTED
        case ScalarNode(origin=origin) if origin:
            return redacted(origin)
        case ScalarNode(value=str(text)):
            return _escaped(redacted(text))
        case ScalarNode():
            return node.value
        case ListNode():
            return [_redact(item, _below(shapes, at), key) for at, item in enumerate(node.items)]
        case MapNode():
            entries = node.entries
            named = next((str(plain(entries[name].value)) for name in ("key", "name") if name in entries), "")
            return {
                redacted(below): _redact(entry.value, _below(shapes, below), named if below == "value" else below)
                for below, entry in entries.items()
            }


def _below(shapes: list[Shape], key: str | int) -> list[Shape]:
    return [below for shape in shapes for below in shape.below(key)]


class _ConfigDumper(yaml.SafeDumper):
    """Quotes text that the core schema would read as something else; writes no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    try:
        plain = read_plain(text) == text
    except ValueError:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")


_ConfigDumper.add_representer(str, _text)
