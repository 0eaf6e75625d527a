"""`podtrail test`: what policies keep, as tests in YAML beside them."""

import json
import shutil
import signal
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from podtrail.cli.output_file import whole_file
from podtrail.cli.reading import Unusable, file_error, refuse_overwriting
from podtrail.cli.report import ConfigProblem, show_warnings
from podtrail.config import ConfigError, printable
from podtrail.story import several
from podtrail.testing.cases.coverage import Coverage
from podtrail.testing.cases.failure_text import coverage_lines, failure_lines
from podtrail.testing.cases.judging import CaseFailure, CaseResult, run_case
from podtrail.testing.cases.junit import write_junit
from podtrail.testing.cases.suite import Suite, listed, read_suite
from podtrail.testing.cases.updating import updated

_INTERVAL: Final = 0.5
_MOST_NAMED: Final = 8
_FAILED: Final = 1
_UNUSABLE: Final = 2

Timed = Sequence[tuple[CaseResult, float]]


class _TestOptions:
    """What the command was asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.files: tuple[Path, ...] = given["files"]
        self.pattern: str = given["pattern"]
        self.junit: Path | None = given["junit"]
        self.json: bool = given["as_json"]
        self.coverage: bool = given["coverage"]
        self.fail_on_uncovered: bool = given["fail_on_uncovered"]
        self.update: bool = given["update"]


@click.command("test")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "-k", "pattern", default="", metavar="TEXT", help="Only cases with this text in their name or file's name."
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--coverage", is_flag=True, help="Show how often each policy said yes, and decided, over all cases.")
@click.option("--fail-on-uncovered", is_flag=True, help="Fail when a policy said yes in no case.")
@click.option("--update", is_flag=True, help="Write what is into the files, where it is not what they expect.")
@click.option("--watch", is_flag=True, help="Run again whenever a file that is involved changes; Ctrl-C ends.")
def command(watch: bool, **given: Any) -> None:
    """Run tests of policies: given these spans, those are kept, by that policy, for that reason.

    FILE is a test file, or a folder with files named *_test.yaml or *.test.yaml.
    """
    if watch and given["update"]:
        raise click.UsageError("--watch and --update exclude one another: what is expected would follow every mistake")
    options = _TestOptions(given)
    if watch:
        _watch(options)
    code, _ = _run(options)
    sys.exit(code)


def _run(options: _TestOptions) -> tuple[int, Collection[Path]]:
    """Run once; return the exit code and the files that were involved."""
    files = _files(options.files)
    suites, problems = _suites(files, unfinished=options.update)
    if options.junit is not None:
        refuse_overwriting([*files, *(path for suite in suites for path in suite.involved)], options.junit)
    if options.update:
        results = [(result, 0.0) for suite in suites for result in _results(suite, options.pattern)]
        if not problems and _write_updates([result for result, _ in results], as_json=options.json):
            suites, problems = _suites(files, unfinished=False)
    involved = {*files, *(path for suite in suites for path in suite.involved), *_troubled(problems)}
    begun = time.perf_counter()
    timed = [one for suite in suites for one in _timed(suite, options.pattern)]
    took = time.perf_counter() - begun
    coverage = Coverage()
    coverage.add(result for result, _ in timed)
    if options.json:
        click.echo(json.dumps(_as_json(timed, coverage, problems), ensure_ascii=False))
    else:
        _show(timed, coverage, options)
    show_warnings(dict.fromkeys(warning for suite in suites for warning in suite.warnings))
    for problem in problems:
        problem.show()
    if not options.json and (timed or problems):
        click.echo(_last_line(timed, len(problems), took))
    if options.junit is not None:
        _write_junit(options.junit, timed)
    if not timed and not problems:
        where = f" with {options.pattern!r} in its name" if options.pattern else ""
        click.echo(f"podtrail: there is no case{printable(where)}", err=True)
        return _UNUSABLE, involved
    if problems:
        return _UNUSABLE, involved
    failed = any(not result.passed for result, _ in timed)
    uncovered = options.fail_on_uncovered and bool(coverage.uncovered)
    return _FAILED if failed or uncovered else 0, involved


def _files(paths: Sequence[Path]) -> Sequence[Path]:
    found: dict[Path, None] = {}
    for path in paths:
        below = listed(path) if path.is_dir() else [path]
        if not below:
            raise click.UsageError(f"no file in {printable(str(path))} is named *_test.yaml or *.test.yaml")
        found.update(dict.fromkeys(below))
    return list(found)


def _suites(files: Sequence[Path], *, unfinished: bool) -> tuple[list[Suite], list[ConfigProblem]]:
    suites: list[Suite] = []
    problems: list[ConfigProblem] = []
    for file in files:
        try:
            suites.append(read_suite(file, unfinished=unfinished))
        except ConfigError as error:
            problems.append(ConfigProblem(error))
    return suites, problems


def _troubled(problems: Sequence[ConfigProblem]) -> Iterator[Path]:
    """Yield the files in which something is wrong."""
    for problem in (problem for error in problems for problem in error.error.problems):
        if (path := Path(problem.position.source.name)).is_file():
            yield path


def _results(suite: Suite, pattern: str) -> Sequence[CaseResult]:
    return [result for result, _ in _timed(suite, pattern)]


def _timed(suite: Suite, pattern: str) -> Timed:
    found: list[tuple[CaseResult, float]] = []
    for case in suite.cases:
        if pattern.lower() in f"{suite.path}: {case.name}".lower():
            begun = time.perf_counter()
            found.append((run_case(suite, case), time.perf_counter() - begun))
    return found


def _write_updates(results: Sequence[CaseResult], *, as_json: bool) -> bool:
    """Write what is; return whether any file changed."""
    changed = False
    for path in dict.fromkeys(result.suite.path for result in results):
        of_file = [result for result in results if result.suite.path == path]
        update = updated(of_file[0].suite.text, of_file)
        for line in update.left:
            click.echo(f"podtrail: {printable(line)}", err=True)
        if update.changes:
            _replace(path, update.text)
            changed = True
            click.echo(f"{printable(str(path))}: {update.changes} updated", err=as_json)
    return changed


def _replace(path: Path, text: str) -> None:
    """Write a file anew; a byte order mark stays."""
    before = path.read_bytes()
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    try:
        with whole_file(path) as written:
            written.write_bytes(mark + text.encode())
            shutil.copymode(path, written)
    except OSError as error:
        raise Unusable(f"can't write {path}: {error.strerror}") from None


def _write_junit(path: Path, timed: Timed) -> None:
    try:
        with whole_file(path) as written:
            write_junit(written, timed)
    except OSError as error:
        raise file_error(error) from None


def _show(timed: Timed, coverage: Coverage, options: _TestOptions) -> None:
    for result, _ in timed:
        for failure in result.failures:
            first, *rest = failure_lines(failure)
            click.echo("\n".join((click.style(first, fg="red"), *rest)))
    for path in dict.fromkeys(result.suite.path for result, _ in timed):
        of_file = [result for result, _ in timed if result.suite.path == path]
        click.echo(f"{printable(str(path))}: {_sums(of_file)}")
    if options.coverage or (options.fail_on_uncovered and coverage.uncovered):
        for line in coverage_lines(coverage.rows):
            click.echo(line)
    elif coverage.uncovered and not options.pattern:
        names = [row.policy for row in coverage.uncovered]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        click.echo(f"never said yes: {printable(', '.join(names[:_MOST_NAMED]))}{more} (--coverage shows all policies)")


def _last_line(timed: Timed, unread: int, took: float) -> str:
    cases = several(len(timed), "case")
    failing = f"; {several(unread, 'file')} could not be read" if unread else ""
    return f"{cases}: {_sums([result for result, _ in timed])} in {took:.2f} s{failing}"


def _sums(results: Sequence[CaseResult]) -> str:
    failed = sum(not result.passed for result in results)
    return f"{len(results) - failed} passed" + (f", {failed} failed" if failed else "")


def _as_json(timed: Timed, coverage: Coverage, problems: Sequence[ConfigProblem]) -> Mapping[str, Any]:
    return {
        "passed": sum(result.passed for result, _ in timed),
        "failed": sum(not result.passed for result, _ in timed),
        "cases": [
            {
                "file": str(result.suite.path),
                "line": result.case.place.line,
                "name": result.case.name,
                "passed": result.passed,
                "seconds": round(took, 6),
                "failures": [_failure(failure) for failure in result.failures],
            }
            for result, took in timed
        ],
        "coverage": coverage.as_json(),
        "problems": [problem.headline for error in problems for problem in error.error.problems],
    }


def _failure(failure: CaseFailure) -> Mapping[str, Any]:
    return {
        "line": failure.place.line,
        "column": failure.place.column,
        "what": failure.what,
        "differences": [difference._asdict() for difference in failure.differences],
        "votes": [vote._asdict() for vote in failure.votes],
    }


def _watch(options: _TestOptions) -> None:
    """Run again and again; the exit code is that of the last run."""
    code = 0
    involved: Collection[Path] = ()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which ends the wait, and not the process
    try:
        while True:
            begun, before = time.time_ns(), _stamps(options.files, involved)
            code, files = _run(options)
            involved = {*involved, *files}
            # What changed while it was run differs from what it was before, or from what it could not have been.
            seen = {**_stamps(options.files, involved, before=begun), **before}
            click.echo(f"watching {len(involved)} files, Ctrl-C ends", err=True)
            while _stamps(options.files, involved) == seen:
                time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        sys.exit(code)


def _stamps(
    paths: Sequence[Path], involved: Collection[Path], before: int | None = None
) -> Mapping[Path, tuple[int, int]]:
    """Return when each file was written and how long it is; test files that came or went count as well.

    With `before`, Unix nanoseconds, of a file that was written since only that it is there.
    """
    stamps: dict[Path, tuple[int, int]] = {}
    for file in {*involved, *(file for path in paths if path.is_dir() for file in listed(path))}:
        try:
            stat = file.stat()
        except OSError:
            continue
        changed = before is not None and stat.st_mtime_ns >= before
        stamps[file] = (0, 0) if changed else (stat.st_mtime_ns, stat.st_size)
    return stamps
