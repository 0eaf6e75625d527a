"""How long `podtrail test` takes for 100 cases, its start included, against starting Python."""

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

CASES = 100
ROUNDS = 7
LIMIT = 2.0
_PODTRAIL = str(Path(sysconfig.get_path("scripts")) / "podtrail")
_POLICIES = Path(__file__).parent.parent / "examples" / "policies"
# What becomes of a Pod's attempts. The second file remembers 6 million decisions, each case anew.
_FILES = {
    "failed-and-slow": "attempt 1: kept by failed",
    "platform-default": "last attempt: {decision: kept, links: [{type: previous-attempt, resolved: true}]}",
}


class Took(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def _case(number: int, expected: str) -> str:
    """Return a case of up to five attempts of two Pods, with a step in time."""
    return f"""\
  - name: case {number}
    given:
      - pod web-{number}: {1 + number % 3} failures by NodeResourcesFit on 30 nodes and NodeAffinity, then success
      - pod slow-{number}: success in {11 + number % 5}00ms waited 2s
    expect:
      - {{at: 1s, pod web-{number} attempt 1: pending}}
      - pod web-{number} {expected}
        pod slow-{number}: kept by slow because longer than 1s
"""


def _took(*command: str) -> Took:
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(time.perf_counter() - began, cpu)


def _write(path: Path, name: str) -> None:
    cases = "".join(_case(number, _FILES[name]) for number in range(CASES))
    environment = "{OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4317'}"
    config = _POLICIES / f"{name}.yaml"
    path.write_text(f"config: {config}\nenvironment: {environment}\ncases:\n{cases}", encoding="utf-8")


def main() -> None:
    """Print the minimum and the median of each, and whether the limit holds."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        for name in _FILES:
            tests = Path(folder) / f"{name}_test.yaml"
            _write(tests, name)
            commands[name] = [_PODTRAIL, "test", str(tests)]
        for command in commands.values():
            _took(*command)
        runs: dict[str, list[Took]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                runs[name].append(_took(*command))
    for name, took in runs.items():
        walls = [one.wall for one in took]
        cpu = min(one.cpu for one in took)
        told = "" if name not in _FILES else "   holds" if min(walls) < LIMIT else "   missed"
        print(f"{name:<18} {min(walls):.3f} / {statistics.median(walls):.3f} s, {cpu:.3f} s of CPU{told}")
    print(f"min / median of {ROUNDS}, {CASES} cases; limit {LIMIT} s")


if __name__ == "__main__":
    main()
