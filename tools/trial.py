"""Trying a change of a room: its tests in a process of their own, the likeliest to notice first."""

import gc
import importlib
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import suppress
from math import ceil
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import pytest

from tools.mutants import Mutant

_MEMORY = 4 << 30  # bytes that a change may have its tests take
_UNSEEN = 71  # the exit status when the change was not imported
_CPU, _WALL = 3, 10  # a change may take so many times what its tests take of the processor without it

_Lines = set[tuple[str, int]]


class Trial:
    """What is known of a room's tests, and the way to try a change on them."""

    def __init__(self, root: Path, tests: list[str], files: list[Path], ours: set[str], patience: float) -> None:
        """Run the tests twice: to see the lines they run, and to see them pass in the order of their durations.

        Args:
            root: The checkout.
            tests: Paths of the room's tests.
            files: The room's modules.
            ours: The packages that are imported anew for each change.
            patience: Seconds of processor time that a change may take beyond what is usual.
        """
        self._patience = patience
        self._root = root
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        traced = _observed(tests, _Run(None, {str(path) for path in files}))
        self._warm(traced.modules, ours)
        order = sorted(traced.durations, key=traced.durations.__getitem__)
        self._durations = _observed(tests, _Run(order, set())).durations
        self._runners: dict[tuple[str, int], set[str]] = defaultdict(set)
        for test, lines in traced.lines.items():
            for line in lines:
                self._runners[line].add(test)

    @staticmethod
    def _warm(modules: list[str], ours: set[str]) -> None:
        """Import what is not ours, for all processes to come."""
        for name in modules:
            if name.split(".")[0] not in ours and "pytest" not in name and name not in sys.modules:
                with suppress(Exception):
                    importlib.import_module(name)
        gc.collect()
        gc.freeze()

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests to run for a change, in order; none if no test runs the line."""
        runners: set[str] = set()
        for line in range(mutant.line, mutant.last + 1):
            runners |= self._runners.get((str(mutant.path), line), set())
        if not mutant.in_function:
            runners = set(self._durations)
        files = {test.partition("::")[0] for test in runners}
        chosen = (test for test in self._durations if test.partition("::")[0] in files)
        return sorted(chosen, key=lambda test: (test not in runners, self._durations[test]))

    def killed_by(self, mutant: Mutant) -> str:
        """Return what kills a change: `test`, `time` or nothing."""
        tests = self.tests_of(mutant)
        if not tests:
            return ""
        paths = sorted({str(self._root / test.partition("::")[0]) for test in tests})
        usual = sum(self._durations[test] for test in tests)

        def work() -> int:
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(_CPU * usual + self._patience),) * 2)
            placed = _put_in_place(mutant.path, mutant.code())
            return _pytest(paths, _Run(tests, set())) or (0 if placed else _UNSEEN)

        status = _forked(work, self._nowhere, _WALL * usual + 3 * self._patience)
        if status == _UNSEEN and mutant.in_function:
            raise SystemExit(f"mutate: no test imports {mutant.path} as this tool expects it")
        return "time" if status is None else "" if status in (0, _UNSEEN) else "test"


class _Run:
    """A pytest plugin: the tests chosen in the order chosen, and what each of them took and ran."""

    def __init__(self, order: list[str] | None, traced: set[str]) -> None:
        self.durations: dict[str, float] = {}
        self.lines: dict[str, _Lines] = {}
        self.modules: list[str] = []
        self._order = order
        self._traced = traced
        self._now: _Lines = set()

    def pytest_collection(self) -> None:
        # The first example that fails is enough: no smaller one, no explanation.
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutate", hypothesis.settings(), phases=phases)
        hypothesis.settings.load_profile("mutate")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._order is not None:
            places = {name: place for place, name in enumerate(self._order)}
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._now = self.lines.setdefault(item.nodeid, set())
        started = time.process_time()
        if self._traced:
            threading.settrace(self._trace)
            sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.durations[item.nodeid] = time.process_time() - started

    def pytest_unconfigure(self) -> None:
        self.modules = list(sys.modules)

    def _trace(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if file not in self._traced:
            return None
        now = self._now

        def line(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
            now.add((file, frame.f_lineno))
            return line

        now.add((file, frame.f_lineno))
        return line


def _put_in_place(path: Path, code: CodeType) -> list[str]:
    """Have this process import a module with other code than its file's; return where it puts the name when it does."""
    placed: list[str] = []
    get_code = importlib.machinery.SourceFileLoader.get_code

    def changed(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != str(path):
            return get_code(loader, name)
        placed.append(name)
        return code

    importlib.machinery.SourceFileLoader.get_code = changed  # type: ignore[method-assign, assignment]
    return placed


def _forked(work: Callable[[], int], output: int, limit: float = 0) -> int | None:
    """Do work in a process of its own.

    Args:
        work: Returns the exit status.
        output: The descriptor that takes what it prints.
        limit: Seconds it may take; 0: as long as it likes.

    Returns:
        Its exit status, or None if it was out of time.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            status = work()
        except BaseException:  # noqa: BLE001 -- nothing may leave the child
            traceback.print_exc()
        finally:
            os._exit(status)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests started and left behind
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _pytest(paths: list[str], run: _Run) -> int:
    # Asserts as they stand: pytest would import what it rewrites (its plugins, so all of ours) past the change.
    quiet = ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    return int(pytest.main([*paths, "-x", *quiet], plugins=[run]))


def _observed(paths: list[str], run: _Run) -> _Run:
    """Run tests without any change in a process of their own and return what was seen."""
    with tempfile.TemporaryFile("w+") as file, tempfile.TemporaryFile("w+") as output:

        def work() -> int:
            status = _pytest(paths, run)
            seen = [run.durations, {test: list(lines) for test, lines in run.lines.items()}, run.modules]
            file.write(json.dumps(seen))
            file.flush()
            return status

        if _forked(work, output.fileno()) != 0:
            output.seek(0)
            raise SystemExit(f"{output.read()}\nmutate: the tests fail without any change")
        file.seek(0)
        run.durations, lines, run.modules = json.load(file)
        run.lines = {test: {(path, line) for path, line in places} for test, places in lines.items()}
    return run
