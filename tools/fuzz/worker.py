"""One parser under libFuzzer, in a process of its own: `python -m tools.fuzz.worker PARSER [libFuzzer's options] …`."""

import importlib
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.parser import Parser

_MOST_CPU = 10.0
"""Seconds of CPU that an input may take; what counts branches makes all of it about ten times as slow."""
_ALONE = 0.4
"""Share of changes that libFuzzer makes by itself, to bytes."""
_INSTRUMENTED = ["podtrail", "podtrail_receivers", "podtrail_processors", "podtrail_exporters", "podtrail_extensions"]


def main(name: str, options: list[str]) -> None:
    """Fuzz until libFuzzer's options say that it is enough, or something is found."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=_INSTRUMENTED):
        parser: Parser = importlib.import_module(f"tools.fuzz.parsers.{name}").PARSER
        for seed in parser.seeds():  # what is imported when it is first used
            parser.check(seed)

    def look(data: bytes) -> None:
        began = time.thread_time()
        parser.check(data)
        spent = time.thread_time() - began
        assert spent < _MOST_CPU, f"{len(data)} bytes took {spent:.1f} s of CPU"

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        random = Random(seed)
        if parser.mutate is None or random.random() < _ALONE:
            return bytes(atheris.Mutate(data, largest))
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            data = parser.mutate(data, random)
        return data[:largest]

    # libFuzzer starts itself again by its first word, through a shell, to merge and to make findings smaller.
    atheris.Setup([f"{sys.executable} -m tools.fuzz.worker {name}", *options], look, custom_mutator=mutate)
    atheris.Fuzz()


def write_seeds(name: str, folder: Path) -> None:
    """Write what a parser is first fed, and its words as libFuzzer reads them."""
    parser: Parser = importlib.import_module(f"tools.fuzz.parsers.{name}").PARSER
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(parser.seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
    words = ("".join(f"\\x{byte:02x}" for byte in word) for word in parser.words)
    folder.with_suffix(".words").write_text("".join(f'"{word}"\n' for word in words), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
