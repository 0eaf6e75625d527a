"""`podtrail print-config`: what the sources come to, ready to be read again; secrets only on request."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import click
import yaml
from pydantic import BaseModel

from podtrail.cli.options import config_options, reporting
from podtrail.config import Document
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode
from podtrail.config.scalars import read_plain
from podtrail.config.secret_keys import REDACTED
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
    """Print the configuration as YAML: all sources merged, references resolved, secrets redacted."""
    with reporting():
        document = Document.load(config, assignments)
        settings = read_settings(document, gates)
    click.echo(to_yaml(document, _classes(settings) if mode == "redacted" else {}), nl=False)


def to_yaml(document: Document, classes: Classes = MappingProxyType({})) -> str:
    """Return the document as YAML that reads the same; what the classes declare a secret is redacted."""
    return yaml.dump(
        _values(document.root, classes), Dumper=_ConfigDumper, sort_keys=False, allow_unicode=True, width=120
    )


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


def _redact(node: Node, shapes: list[Shape]) -> Any:
    """Return the plain value with secrets exchanged and dollar signs written so that they are read back as such."""
    match node:
        case ScalarNode(value=str(text)):
            if any(shape.is_secret for shape in shapes):
                return REDACTED
            return text.replace("$", "$$") if "${" in text or "$$" in text else text
        case ScalarNode():
            return node.value if not any(shape.is_secret for shape in shapes) or node.value is None else REDACTED
        case ListNode():
            return [_redact(item, _below(shapes, at)) for at, item in enumerate(node.items)]
        case MapNode():
            return {key: _redact(entry.value, _below(shapes, key)) for key, entry in node.entries.items()}


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
