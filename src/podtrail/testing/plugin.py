"""The pytest plugin, found by pytest through its entry point.

Fixtures: `podtrail_replay` (and the same as `replay`), and `podtrail_recording`, which is each recording of the folder
that `@pytest.mark.podtrail_recordings("folder")` names. With `podtrail_tests = true` in pytest's configuration files
named `*_test.yaml` or `*.test.yaml` are collected, each case an item; one that is named on the command line always is.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from podtrail.replay.replayer import Run
    from podtrail.testing.cases.judging import CaseFailure
    from podtrail.testing.cases.suite import Case, Suite

_INI = "podtrail_tests"
_MARKER = "podtrail_recordings"
_FIXTURE = "podtrail_recording"
_TESTS = ("_test.yaml", ".test.yaml", "_test.yml", ".test.yml")
_FORMS = tuple(form + compressed for form in (".jsonl", ".otlp", ".json") for compressed in ("", ".gz", ".zst"))


@pytest.fixture(name="replay")
def _replay(request: pytest.FixtureRequest) -> Callable[..., "Run"]:
    """Return `podtrail.testing.replay`: `run = replay("pipeline.yaml", "recording.otlp")`.

    Files are looked for beside the test, then in the current folder.
    """
    # Imported when used: a test run that needs no pipeline should not pay for one.
    from podtrail.testing import replay_beside

    return replay_beside(request.path.parent)


@pytest.fixture(name="podtrail_replay")
def _podtrail_replay(replay: Callable[..., "Run"]) -> Callable[..., "Run"]:
    """Return the same under a name that nobody else has."""
    return replay


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that switches the collection of test files on."""
    parser.addini(_INI, "Collect podtrail's tests of policies: *_test.yaml and *.test.yaml.", "bool", False)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(folder): run the test once for each recording in a folder, relative to the test's file; "
        f"the fixture {_FIXTURE} is its path",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a recording once for each of its folders' recordings."""
    if _FIXTURE not in metafunc.fixturenames:
        return
    markers = list(metafunc.definition.iter_markers(_MARKER))
    if not markers:
        pytest.fail(f"{_FIXTURE} needs @pytest.mark.{_MARKER}(folder)", pytrace=False)
    found = [path for marker in markers for path in _recordings(metafunc, marker)]
    metafunc.parametrize(_FIXTURE, found, ids=[path.name for path in found])


def _recordings(metafunc: pytest.Metafunc, marker: pytest.Mark) -> list[Path]:
    if len(marker.args) != 1 or marker.kwargs:
        pytest.fail(f"@pytest.mark.{_MARKER} takes one folder", pytrace=False)
    folder = metafunc.definition.path.parent / marker.args[0]
    found = sorted(path for path in folder.glob("*") if path.name.endswith(_FORMS)) if folder.is_dir() else []
    if not found:
        pytest.fail(f"{folder} has no recording: .jsonl or .otlp, either with .gz or .zst behind", pytrace=False)
    return found


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect test files where that is asked for: other programs have files of such names, too."""
    if not file_path.name.endswith(_TESTS):
        return None
    if not (parent.config.getini(_INI) or parent.session.isinitpath(file_path)):
        return None
    file: pytest.Collector = PolicyTests.from_parent(parent, path=file_path)
    return file


class Unexpected(AssertionError):
    """A case is not as expected."""

    def __init__(self, failures: "list[CaseFailure]") -> None:
        super().__init__(failures[0].headline)
        self.failures = failures


class PolicyTests(pytest.File):
    """A file of tests of policies."""

    def collect(self) -> Iterator["PolicyTest"]:
        """Yield its cases.

        Raises:
            CollectError: the file can't be read as tests.
        """
        from podtrail.config import ConfigError
        from podtrail.testing.cases.suite import read_suite

        here = self.config.invocation_params.dir
        path = self.path.relative_to(here) if self.path.is_relative_to(here) and here == Path.cwd() else self.path
        try:
            suite = read_suite(path)
        except ConfigError as error:
            raise self.CollectError(str(error)) from None
        for case in suite.cases:
            item: PolicyTest = PolicyTest.from_parent(self, name=case.name, suite=suite, case=case)
            yield item


class PolicyTest(pytest.Item):
    """One case."""

    def __init__(self, *, suite: "Suite", case: "Case", **more: Any) -> None:
        super().__init__(**more)
        self._suite = suite
        self._case = case

    def runtest(self) -> None:
        """Run the case.

        Raises:
            Unexpected: something came out otherwise than the case expects.
        """
        from podtrail.testing.cases.judging import run_case

        result = run_case(self._suite, self._case)
        if not result.passed:
            raise Unexpected(result.failures)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what differs and how the policies voted; anything else with its traceback."""
        from podtrail.testing.cases.failure_text import failure_lines

        if isinstance(excinfo.value, Unexpected):
            return "\n".join(line for failure in excinfo.value.failures for line in failure_lines(failure))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case stands; lines count from 0."""
        return self.path, self._case.place.line - 1, self.name
