"""Which code reads requests: the extension where it is there and fits, else Python, which says why."""

import subprocess
import sys
from pathlib import Path

import pytest

from podtrail.otlp import Group, native

PRINT = "from podtrail.otlp import native; print(native.RUNS, native.IS_LOADED)"
FITS = """
__version__, INTERFACE = "7.1", 4
def check_and_cut(request): return [(b"r", b"s", b"t" * 16, request, 1)], 0
def trace_facts(spans, keys): return 3, 9, 5, [b"pair"]
def has_root(spans): return True
def find(data, mark, start): return 7
def linked_traces(spans, most): return [b"t" * 16]
def fnv1a(data, state): return 7
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        pytest.param(FITS, "podtrail-native 7.1 True", id="it fits"),
        pytest.param(
            "__version__ = '0.1'", "Python (podtrail-native 0.1 is for another podtrail) False", id="the first"
        ),
        pytest.param("__version__, INTERFACE = '7.1', 0", "Python (podtrail-native 7.1 is for another podtrail) False"),
        pytest.param(
            "raise ImportError('no such file')", "Python (podtrail-native can't be loaded: no such file) False"
        ),
        pytest.param("raise ModuleNotFoundError('no')", "Python (podtrail-native is not installed) False"),
    ],
)
def test_says_which_code_reads_and_why(tmp_path: Path, module: str, said: str) -> None:
    (tmp_path / "podtrail_native.py").write_text(module, encoding="utf-8")
    assert run(tmp_path, PRINT) == said


@pytest.mark.parametrize("word", ["off", "0", "False"])
def test_can_be_switched_off(tmp_path: Path, word: str) -> None:
    (tmp_path / "podtrail_native.py").write_text(FITS, encoding="utf-8")
    code = f"import os; os.environ['PODTRAIL_NATIVE'] = {word!r}; {PRINT}"
    assert run(tmp_path, code) == f"Python (PODTRAIL_NATIVE={word}) False"


@pytest.mark.parametrize("word", ["", "true"])
def test_is_not_switched_off_by_other_words(tmp_path: Path, word: str) -> None:
    (tmp_path / "podtrail_native.py").write_text(FITS, encoding="utf-8")
    code = f"import os; os.environ['PODTRAIL_NATIVE'] = {word!r}; {PRINT}"
    assert run(tmp_path, code) == "podtrail-native 7.1 True"


def test_what_it_answers_becomes_groups_and_facts(tmp_path: Path) -> None:
    (tmp_path / "podtrail_native.py").write_text(FITS, encoding="utf-8")
    code = "from podtrail.otlp import read_request, native; print(read_request(b'x').groups, native.trace_facts(b''))"
    group = Group(b"r", b"s", b"t" * 16, b"x", 1)
    facts = native.Facts(3, 9, (0, 2), [b"pair"])
    assert run(tmp_path, code) == f"{[group]} {facts}"


def test_python_can_do_everything_meanwhile() -> None:
    loaded = native.check_and_cut(b"") is not None
    with native.in_python():
        assert native.check_and_cut(b"") is None
    assert (native.check_and_cut(b"") is not None) == loaded == native.IS_LOADED


def run(folder: Path, code: str) -> str:
    """Run code where a folder is the first in which modules are looked for."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"
    environment = {"PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()
