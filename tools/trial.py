"""Trying changes of a room: its tests in a process of their own each, the likeliest to notice first."""

import gc
import importlib
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
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import _pytest.main
import hypothesis
import psutil
import pytest

from tools.mutants import Mutant

_MEMORY = 4 << 30  # bytes that a change may have its tests take
_TIMES = 3  # a change may take so many times what its tests take of the processor without it
_ALIVE = 0.02  # seconds of the processor that what is not stuck takes while patience lasts
_UNTRIED = 70  # the exit status when a change can't be put in place


class Trial:
    """A pytest plugin that runs the tests that were collected again and again, in a fork of this process each time.

    So everything is imported once, and no change outlives its process.
    """

    def __init__(self, files: list[Path], patience: float, conduct: "Callable[[Trial], None]") -> None:
        """Prepare.

        Args:
            files: The room's modules.
            patience: Seconds of the processor that a change may take beyond what is usual, and that it may do nothing.
            conduct: What is to be done with the trial when the tests are there.
        """
        self.failure = ""
        """Why it came to nothing."""
        self.usual = 0.0
        """Seconds that a round of all tests takes without a change, on the clock."""
        self._files = {str(path) for path in files}
        self._patience = patience
        self._conduct = conduct
        self._functions: list[FunctionType] = []
        self._durations: dict[str, float] = {}
        self._runners: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._nowhere = os.open(os.devnull, os.O_WRONLY)

    def run(self, tests: list[str]) -> None:
        """Collect tests and try changes on them.

        Args:
            tests: Their paths.

        Raises:
            SystemExit: They fail without any change.
        """
        kept = os.dup(1), os.dup(2)
        with tempfile.TemporaryFile("w+") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            # (That hypothesis was imported before pytest could rewrite its asserts is as meant.)
            quiet = [
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:faulthandler",
            ]
            try:
                pytest.main([*tests, "-x", "-s", *quiet], plugins=[self])
            finally:
                sys.stdout.flush()
                os.dup2(kept[0], 1)
                os.dup2(kept[1], 2)
            if self.failure:
                said.seek(0)
                raise SystemExit(f"{said.read()}\nmutate: {self.failure}")

    def pytest_collection(self) -> None:
        """Have properties stop at the first example that fails: no smaller one, no explanation."""
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutate", hypothesis.settings(), phases=phases)
        hypothesis.settings.load_profile("mutate")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests twice: to see which lines each runs, and to see them pass in the order of their durations."""
        self._session = session
        for path in self._files:
            importlib.import_module(_module_name(Path(path)))  # also what is imported when it is first used
        gc.collect()
        functions = [some for some in gc.get_objects() if isinstance(some, FunctionType)]
        self._functions = [function for function in functions if function.__code__.co_filename in self._files]
        seen = self._observed([item.nodeid for item in session.items], self._files)
        for test, places in (seen.lines if seen else {}).items():
            for path, line in places:
                self._runners[path, line].add(test)
        began = time.monotonic()
        again = self._observed(sorted(seen.durations, key=seen.durations.__getitem__), set()) if seen else None
        self.usual = time.monotonic() - began
        if session.testsfailed or not again:
            self.failure = "the tests fail without any change"
        else:
            self._durations = again.durations
            self._conduct(self)
        return True

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests to run for a change, in order; none if no test runs the line."""
        runners: set[str] = set()
        for line in range(mutant.line, mutant.last + 1):
            runners |= self._runners.get((str(mutant.path), line), set())
        files = {test.partition("::")[0] for test in runners}
        chosen = (test for test in self._durations if test.partition("::")[0] in files)
        return sorted(chosen, key=lambda test: (test not in runners, self._durations[test]))

    def killed_by(self, mutant: Mutant) -> str:
        """Return what kills a change: `test`, `time`, or nothing; `untried` if it can't be put in place."""
        tests = self.tests_of(mutant)
        if not tests:
            return ""
        usual = sum(self._durations[test] for test in tests)

        def work() -> int:
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            if not _is_put_in_place(mutant, self._functions):
                return _UNTRIED
            return self._run(tests)

        status = _forked(work, self._nowhere, _TIMES * usual + self._patience, self._patience)
        return {None: "time", 0: "", _UNTRIED: "untried"}.get(status, "test")

    def _run(self, tests: list[str]) -> int:
        """Run tests in this order until one fails; return the exit status."""
        places = {name: place for place, name in enumerate(tests)}
        items = [item for item in self._session.items if item.nodeid in places]
        self._session.items = sorted(items, key=lambda item: places[item.nodeid])
        try:
            _pytest.main.pytest_runtestloop(self._session)
        except pytest.Session.Failed:
            return 1
        return int(self._session.testsfailed > 0)

    def _observed(self, tests: list[str], traced: set[str]) -> "_Watch | None":
        """Run tests without any change; return what was seen, None if they fail."""
        watch = _Watch(traced)
        with tempfile.TemporaryFile("w+") as told:

            def work() -> int:
                self._session.config.pluginmanager.register(watch)
                status = self._run(tests)
                json.dump((watch.durations, {test: list(lines) for test, lines in watch.lines.items()}), told)
                told.flush()
                return status

            if _forked(work, 1) != 0:
                return None
            told.seek(0)
            watch.durations, lines = json.load(told)
            watch.lines = {test: {(path, line) for path, line in places} for test, places in lines.items()}
        return watch


class _Watch:
    """A pytest plugin that notes what each test took, and which lines it ran."""

    def __init__(self, traced: set[str]) -> None:
        self.durations: dict[str, float] = {}
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self._traced = traced
        self._now: set[tuple[str, int]] = set()

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

    def _trace(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if file not in self._traced:
            return None
        now = self._now

        def line(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
            now.add((file, frame.f_lineno))
            return line

        return line(frame, "", None)


def _forked(work: Callable[[], int], output: int, limit: float = inf, patience: float = inf) -> int | None:
    """Do work in a process of its own.

    Args:
        work: Returns the exit status.
        output: The descriptor that takes what it prints.
        limit: Seconds of the processor that it may take.
        patience: Seconds in which it must do something.

    Returns:
        Its exit status, or None if it was out of time.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            status = work()
        except BaseException:  # noqa: BLE001 -- nothing may leave the child
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    try:
        return _waited(child, limit, patience)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests started and left behind


def _waited(child: int, limit: float, patience: float) -> int | None:
    """Return the exit status of a process; None if it was killed, because it was out of time or by itself."""
    process = psutil.Process(child)
    pause, active, moved = 0.005, 0.0, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        used = process.cpu_times()
        if used.user + used.system > active + _ALIVE:
            active, moved = used.user + used.system, time.monotonic()
        if active > limit or time.monotonic() > moved + patience:
            process.kill()
        time.sleep(pause)
        pause = min(2 * pause, 0.2)


def _module_name(path: Path) -> str:
    parts = [] if path.stem == "__init__" else [path.stem]
    while (path := path.parent).joinpath("__init__.py").exists():
        parts.insert(0, path.name)
    return ".".join(parts)


def _is_put_in_place(mutant: Mutant, functions: list[FunctionType]) -> bool:
    """Give the functions that come from a changed piece of text the changed code; say whether there are any."""
    changed: dict[tuple[str, int], list[CodeType]] = defaultdict(list)
    for code in _codes(mutant.code()):
        changed[code.co_qualname, code.co_firstlineno].append(code)
    placed = 0
    for function in functions:
        old = function.__code__
        codes = changed[old.co_qualname, old.co_firstlineno]
        if old.co_filename == str(mutant.path) and len(codes) == 1 and codes[0] != old:
            try:
                function.__code__ = codes[0]
            except ValueError:  # it needs other variables of the functions around it
                return False
            placed += 1
    return placed > 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
