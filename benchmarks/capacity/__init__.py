"""What `podtrail capacity` plans with, measured anew beside what it comes with; how near the model comes.

`./dev bench capacity [NAME ...]` measures the figures, or those that are named; `--points` lays podtrail out in three
ways and compares what that takes with what the model says. `--write` keeps what was found: the figures in
`src/podtrail/capacity/figures.json`, the points in `benchmarks/capacity/points.json`, from which `./dev docs` makes the
tables of docs/scaling.md. Needs what `tests/kafka/build.sh` fetches.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.capacity.measures import Measures
from benchmarks.capacity.points import POINTS, compare
from benchmarks.kafka import broker
from podtrail.capacity import Figures, SpanCost, measured
from podtrail.capacity.calibration import turn_us

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "src" / "podtrail" / "capacity" / "figures.json"
POINTS_KEPT = ROOT / "benchmarks" / "capacity" / "points.json"
SECONDS = 10.0
"""For which a point is under load."""
_NAMES = [name for name in Figures.model_fields if name not in {"machine", "turn_us"}]


def main(arguments: list[str]) -> int:
    """Measure and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="./dev bench capacity", description="Measure what plans are made of.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_NAMES)}; by default all")
    parser.add_argument("--rounds", type=int, default=3, help="how often; the median counts")
    parser.add_argument("--points", action="store_true", help="compare what three layouts take with what is planned")
    parser.add_argument("--write", action="store_true", help="keep what was measured")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(_NAMES)):
        parser.error(f"no such figure: {', '.join(unknown)}; there are {', '.join(_NAMES)}")
    if options.points:
        _points(write=options.write)
        return 0
    names = options.names or _NAMES
    kept = measured()
    # All of them are told in the time of one machine; where all are measured that is this one.
    turn = turn_us() if options.write and names == _NAMES else kept.turn_us
    found: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "kafka") as kafka:
            measures = Measures(Path(folder), kafka, turn)
            for name in names:
                found[name].append(getattr(measures, name)())
                print(f"  {name}: {found[name][-1]}", flush=True)
    fresh = {name: _median(values) for name, values in found.items()}
    print(f"FIGURE{'KEPT':>34}{'MEASURED':>14}{'RATIO':>8}")
    for name in names:
        for line in _compared(name, getattr(kept, name), fresh[name]):
            print(line)
    if options.write:
        _write(kept, fresh, turn)
    return 0


def _points(*, write: bool) -> None:
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "kafka") as kafka:
        for point in POINTS:
            quantities = list(compare(point, measured(), Path(folder), kafka, SECONDS))
            found.append({"point": point.told, "quantities": [each._asdict() for each in quantities]})
            for each in quantities:
                print(
                    f"{point.told:<42}{each.name:<24}{each.planned:>14,.4g} planned{each.measured:>14,.4g} {each.unit}"
                    f"{each.planned / each.measured:8.2f}",
                    flush=True,
                )
    if write:
        POINTS_KEPT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(f"written to {POINTS_KEPT.relative_to(ROOT)}")


def _median(values: list[Any]) -> Any:
    if not isinstance(values[0], SpanCost):
        return statistics.median(values)
    return SpanCost(**{key: statistics.median(getattr(each, key) for each in values) for key in SpanCost.model_fields})


def _compared(name: str, kept: Any, fresh: Any) -> Iterator[str]:
    if isinstance(kept, SpanCost):
        for key in SpanCost.model_fields:
            yield from _compared(f"{name}.{key}", getattr(kept, key), getattr(fresh, key))
    else:
        ratio = f"{fresh / kept:8.2f}" if kept else ""
        yield f"{name:<26}{kept:>14,.5g}{fresh:>14,.5g}{ratio}"


def _write(kept: Figures, fresh: dict[str, Any], turn: float) -> None:
    told = kept.model_dump() | {name: _rounded(value) for name, value in fresh.items()}
    told["turn_us"] = round(turn)
    told["machine"] = (
        f"{os.cpu_count()} cores of a virtual machine, Python {platform.python_version()}, {datetime.now(UTC):%B %Y}"
    )
    KEPT.write_text(json.dumps(Figures.model_validate(told).model_dump(), indent=2) + "\n", encoding="utf-8")
    print(f"written to {KEPT.relative_to(ROOT)}")


def _rounded(value: Any) -> Any:
    if isinstance(value, SpanCost):
        return {key: round(each, 3) for key, each in value}
    return round(value) if value > 1000 else round(value, 3)
