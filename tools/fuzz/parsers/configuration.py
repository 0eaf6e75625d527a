"""Configurations: YAML through `read_settings`."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import read_settings
from tools.fuzz.parser import Parser
from tools.fuzz.trees import SCALARS, mutate_tree

_EXAMPLES = Path(__file__).parents[3]
_ENVIRON = {"X": "7", "LIST": "[a, b]"}
_WORDS: tuple[Any, ...] = (
    *("1s", "-1s", "1h30m", "0", "localhost:0", "http://x", "a/b", "${env:X}", "${env:LIST}", "${env:NONE:-d}", "$$"),
    *("name", "type", "otlp", "tail_sampling", "file_storage", "traces", "100%", "1MiB", "[", "(?P<", "*"),
)
_CODE = ("python", "file:")
"""What runs the user's code, or reads the user's files, is left out."""


def check(data: bytes) -> None:
    """Read a configuration: refused in words that name a place, or read again as the same from its plain values."""
    text = data.decode("utf-8", "replace")
    if any(word in text for word in _CODE):
        return
    try:
        document = Document.from_text(text, environ=_ENVIRON)
        settings = read_settings(document)
    except ConfigError as error:
        assert error.problems, "refused without a problem"
        assert all(str(problem).strip() for problem in error.problems), "a problem without words"
        return
    again = Document.from_mapping(document.plain(), environ={})
    assert again.plain() == document.plain() or "nan" in text.lower(), "plain values come again as others"
    assert [each.id for each in settings.pipelines], "a configuration without pipelines is read"


def mutate(data: bytes, random: Random) -> bytes:
    """Change one thing in the tree."""
    try:
        tree = yaml.safe_load(data)
        return yaml.safe_dump(mutate_tree(tree, random, (*SCALARS, *_WORDS)), sort_keys=False).encode()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError):
        return data + b"\n"


def seeds() -> Iterator[bytes]:
    """Yield the default and what users have pasted."""
    yield from (path.read_bytes() for path in (_EXAMPLES / "pipeline.yaml", *_pasted()))


def _pasted() -> list[Path]:
    return sorted((_EXAMPLES / "tests/data/pasted").glob("*.yaml"))


PARSER = Parser(
    check, seeds, mutate,
    words=(
        b"receivers:", b"processors:", b"exporters:", b"service:", b"pipelines:", b"traces:", b"${env:", b"&a", b"*a",
        b"<<: *a", b"!!binary", b"!!python/name:", b"---", b"? ", b"|\n", b">-\n", b"%YAML 1.2", b"\t", b"policies:",
    ),
)  # fmt: skip
