"""How long `podtrail test` takes for 100 cases, its start included, against starting Python."""

import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

CASES = 100
ROUNDS = 7
LIMIT = 2.0
_PODTRAIL = str(Path(sysconfig.get_path("scripts")) / "podtrail")
_POLICIES = Path(__file__).parent.parent / "examples" / "policies" / "platform-default.yaml"


def _case(number: int) -> str:
    """Return a case of five attempts of two Pods, with links, numbers and a step in time."""
    return f"""\
  - name: case {number}
    given:
      - pod web-{number}: {1 + number % 3} failures by NodeResourcesFit on 30 nodes and NodeAffinity, then success
      - pod slow-{number}: success in {1 + number % 5}100ms waited 2m
    expect:
      - {{at: 1s, pod web-{number} attempt 1: pending}}
      - pod web-{number} attempt 1: {{decision: kept, because: not seen in the last 30m}}
        pod web-{number} last attempt: {{decision: kept, number: {2 + number % 3}, links: [{{type: previous-attempt}}]}}
        pod slow-{number}: kept by slow because longer than 1s
"""


def _took(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Print the minimum and the median of both, and whether the limit holds."""
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder) / "policies_test.yaml"
        cases = "".join(map(_case, range(CASES)))
        environment = "{OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4317'}"
        tests.write_text(f"config: {_POLICIES}\nenvironment: {environment}\ncases:\n{cases}", encoding="utf-8")
        bare = [sys.executable, "-c", "pass"]
        command = [_PODTRAIL, "test", str(tests)]
        _took(*command)
        rounds = [(_took(*bare), _took(*command)) for _ in range(ROUNDS)]
    for name, seconds in zip(
        ("python -c pass", f"podtrail test, {CASES} cases"), zip(*rounds, strict=True), strict=True
    ):
        print(f"{name:<26} {min(seconds):.3f} / {statistics.median(seconds):.3f} s")
    least = min(took for _, took in rounds)
    print(f"min / median of {ROUNDS}; limit {LIMIT} s: {'holds' if least < LIMIT else 'missed'}")


if __name__ == "__main__":
    main()
