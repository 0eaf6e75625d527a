"""How podtrail was called, for commands that it proposes: they can be pasted."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from podtrail.cli.running_page import DEFAULT_ENDPOINT
from podtrail.story import shell_word

_NAME: Final = "podtrail"


def typed_program() -> str:
    """Return what to type before the arguments to call this program once more."""
    called = Path(sys.argv[0])
    if called.name == "kubectl-podtrail":
        return "kubectl podtrail"
    if called.name == "__main__.py" and called.parent.name == _NAME:
        return f"{shell_word(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    if called.name != _NAME or (found and Path(found).absolute() == called.absolute()):
        return _NAME
    return shell_word(sys.argv[0])


def asked_again(
    files: Sequence[Path],
    logs: Sequence[Path],
    watches: Sequence[Path],
    timezone: str,
    config: Sequence[str],
    assignments: Sequence[str],
    endpoint: str,
) -> str:
    """Return the options that ask the same source once more; "" for the page that is asked by itself."""
    words = ["--from", *map(str, files)] if files else []
    for option, values in (
        ("--config", config),
        ("--set", assignments),
        ("--log", logs),
        ("--watch", watches),
        ("--timezone", [timezone] if timezone else []),
    ):
        words += [word for value in values for word in (option, str(value))]
    if not words and endpoint != DEFAULT_ENDPOINT and typed_program() != "kubectl podtrail":
        words = ["--endpoint", endpoint]  # kubectl's is that of a connection which ends with this command
    return " ".join(map(shell_word, words))


def pasteable(command: str, whom: str) -> str:
    """Return a command that an answer proposes as it is to be typed here; another program's stays."""
    program, _, rest = command.partition(" ")
    return f"{typed_program()} {rest}{' ' if whom else ''}{whom}" if program == _NAME else command
