"""Every input of the corpus that fuzzing has gathered, and a few more beside it, keep the promises of their parser."""

from importlib import import_module
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from tools.fuzz.__main__ import CORPUS, main, parsers
from tools.fuzz.parser import Parser

LARGEST = 4096
"""Bytes of a file of the corpus."""
NEIGHBOURS = 3
"""Changed inputs that are tried for each of the corpus."""


def parser_of(name: str) -> Parser:
    parser: Parser = import_module(f"tools.fuzz.parsers.{name}").PARSER
    return parser


def inputs(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())


@pytest.mark.parametrize("name", parsers())
def test_what_fuzzing_gathered_keeps_the_promises(name: str) -> None:
    parser = parser_of(name)
    for path in inputs(name):
        parser.check(path.read_bytes())
    for seed in parser.seeds():
        parser.check(seed)


@pytest.mark.parametrize("name", parsers())
def test_what_lies_beside_it_does_too(name: str) -> None:
    parser = parser_of(name)
    assert parser.mutate is not None
    for path in inputs(name):
        data = path.read_bytes()
        random = Random(crc32(data))  # the same with every run
        for _ in range(NEIGHBOURS):
            data = parser.mutate(data, random)[: parser.largest]
            parser.check(data)


@pytest.mark.parametrize("name", parsers())
def test_the_corpus_is_small(name: str) -> None:
    files = inputs(name)
    assert files
    assert [path.name for path in files if path.stat().st_size > LARGEST] == []


def test_a_parser_that_is_none_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["requsts"])
    assert "there is no parser requsts; there are " + ", ".join(parsers()) in capsys.readouterr().err
