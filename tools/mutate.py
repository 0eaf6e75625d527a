"""Mutation testing of one room: change one thing in it, run its tests, see whether one fails.

    ./dev mutate ROOM [--sample N --seed S] [--tests PATH ...] [--at-least PERCENT]

ROOM is a folder or module as the tests name it (`pipeline/sending`, `link_stitching`, `scheduler/cache`) or a path. Its
tests are those that mirror it, as `./dev test` finds them. They run once with a tracer, to learn which lines each of
them runs, and once as they will be run with a change; only then each change is tried, in a fork of the process that has
imported everything. Only the test files with a test that runs the changed line are run, the tests that do first, the
quickest first, until one fails. What doesn't end in time or eats all memory is killed as well.

Survivors are printed as they are found; standard error tells which tests run, what a round of them takes, and of each
change that was tried what became of it. Changes that no test can tell from the original, because they do the same, are
listed in `equivalents.toml` with the reason, and count neither way.
"""

import argparse
import os
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.mutants import Mutant, mutants
from tools.trial import Trial

_EQUIVALENTS = "tools/equivalents.toml"
_ENDS = {"test": "killed", "time": "out of time", "": "survives", "untried": "can't be tried"}
_TESTS_OF = Path(__file__).with_name("tests_of.sh")


class Room:
    """A folder or module, the tests that mirror it and its changes."""

    def __init__(self, root: Path, name: str, tests: list[str]) -> None:
        """Find the room.

        Args:
            root: The checkout.
            name: As the tests name it, or a path.
            tests: Test paths to run instead of those that mirror the room.

        Raises:
            SystemExit: None or several are called so.
        """
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        sources = project["tool"]["hatch"]["build"]["dev-mode-dirs"]
        packages = [package for source in sources for package in sorted((root / source).glob("*/"))]
        found = [
            (path, mirror)
            for package in packages
            for path in [*package.rglob("*/"), *package.rglob("*.py")]
            if (mirror := _mirror(root, package, path))
            and (_is_called(mirror, name) or path == (root / name).resolve())
        ]
        found = [(path, mirror) for path, mirror in found if str(mirror) == name] or found
        if len(found) != 1:
            known = ", ".join(str(path.relative_to(root)) for path, _ in found) or "nothing"
            raise SystemExit(f"mutate: {name} is {known}; one room, please")
        self.root = root
        self.path, mirror = found[0]
        self.tests = tests or _tests_of(root, mirror)

    def files(self) -> list[Path]:
        """Return the room's modules, sorted."""
        return sorted(self.path.rglob("*.py")) if self.path.is_dir() else [self.path]


def _mirror(root: Path, package: Path, path: Path) -> Path:
    source = package.parent.relative_to(root)
    inside = path.relative_to(package).with_suffix("")
    return inside if str(source) == "src" else source / inside


def _is_called(mirror: Path, name: str) -> bool:
    return f"/{mirror}".endswith(f"/{name}")


def _tests_of(root: Path, mirror: Path) -> list[str]:
    """Return the tests that `./dev test` runs for a room.

    Raises:
        SystemExit: There are none.
    """
    command = ["sh", str(_TESTS_OF), str(mirror)]
    found = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout  # noqa: S603
    if not found:
        raise SystemExit(f"mutate: no tests mirror {mirror}; --tests PATH says which to run")
    return [str(root / test) for test in sorted(found.splitlines())]


def _equivalents(room: Room) -> dict[str, dict[str, str]]:
    file = room.root / _EQUIVALENTS
    listed = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    names = {str(path.relative_to(room.root)) for path in room.files()}
    return {file: reasons for file, reasons in listed.items() if file in names}


def _chosen(room: Room, sample: int | None, seed: int) -> Iterator[tuple[Mutant, bool]]:
    """Yield the changes to try and whether each is known to be equivalent."""
    equivalents = _equivalents(room)
    everything = [mutant for path in room.files() for mutant in mutants(path)]
    for file, reasons in equivalents.items():
        for name in reasons.keys() - {mutant.name for mutant in everything if mutant.path == room.root / file}:
            print(f"{_EQUIVALENTS}: {file} has no {name!r} any more", flush=True)
    places = range(len(everything))
    for place in sorted(random.Random(seed).sample(places, min(sample or len(places), len(places)))):
        mutant = everything[place]
        yield mutant, mutant.name in equivalents.get(str(mutant.path.relative_to(room.root)), {})


def main() -> int:
    """Try the changes of a room and print the survivors and the rate.

    Returns:
        The exit status: 0 if the rate is at least what was asked for.
    """
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Change one thing, run the tests, see one fail.")
    parser.add_argument("room", help="a folder or module as the tests name it: pipeline/sending, scheduler/cache")
    parser.add_argument("--sample", type=int, help="try so many of its changes (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--tests", nargs="+", default=[], help="run these instead of those that mirror the room")
    parser.add_argument("--patience", type=float, default=10, help="seconds of grace for a change that may never end")
    parser.add_argument("--at-least", type=float, default=0, help="exit with 1 below this rate, in percent")
    asked = parser.parse_args()
    os.nice(max(0, 15 - os.nice(0)))
    room = Room(Path.cwd(), asked.room, asked.tests)
    chosen = list(_chosen(room, asked.sample, asked.seed))
    counts = {"test": 0, "time": 0, "": 0, "untried": 0}
    with (  # beside what pytest says
        open(os.dup(1), "w", buffering=1, encoding="utf-8") as out,
        open(os.dup(2), "w", buffering=1, encoding="utf-8") as progress,
    ):
        print(f"{len(chosen)} changes of {room.path.relative_to(room.root)}", file=out)
        told = [os.path.relpath(test, room.root) for test in room.tests]
        print(f"tests: {' '.join(told)}; first without a change, twice", file=progress)

        def conduct(trial: Trial) -> None:
            print(f"a round without a change: {trial.usual:.1f} s", file=progress)
            to_try = [mutant for mutant, is_equivalent in chosen if not is_equivalent]
            for number, mutant in enumerate(to_try, start=1):
                began = time.monotonic()
                end = trial.killed_by(mutant)
                counts[end] += 1
                name = f"{mutant.path.relative_to(room.root)}:{mutant.line}: {mutant.name}"
                took = time.monotonic() - began
                print(f"{number}/{len(to_try)} {_ENDS[end]} ({took:.1f} s) {name}", file=progress)
                if not end:
                    why = "" if trial.tests_of(mutant) else " (no test runs it)"
                    print(f"{name}{why}", file=out)

        Trial(room.files(), asked.patience, conduct).run(room.tests)
    killed = counts["test"] + counts["time"]
    tried = killed + counts[""]
    rate = 100 * killed / tried if tried else 100.0
    untried = f", {counts['untried']} that can't be tried" if counts["untried"] else ""
    print(
        f"{killed} of {tried} killed ({rate:.1f} %), {counts['time']} of them by time; "
        f"{len(chosen) - tried - counts['untried']} left out as equivalent{untried}"
    )
    return int(rate < asked.at_least)


if __name__ == "__main__":
    sys.exit(main())
