"""`./dev versions`: runs the matrix of kube-schedulers on a real API server and compares what podtrail rebuilds.

Exit code 1: attempts differ from those that a scheduler counted, or from what docs/stock-scheduler.md predicts.
2: a program is missing.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.envtest.control_plane import DEFAULT_ASSETS, ControlPlane
from tests.reconstruction.versions.facts import DOCUMENT, replaced, table
from tests.reconstruction.versions.live_run import Stage
from tests.reconstruction.versions.matrix import RECORDED, RUNS, VERSIONS, Recording, program
from tests.reconstruction.versions.verdict import differences
from tests.reconstruction.versions.workload import prepare


def main() -> int:
    """Do what the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(prog="./dev versions", description=__doc__)
    parser.add_argument("--version", action="append", choices=list(VERSIONS), help="only this minor release")
    parser.add_argument("--run", action="append", choices=[run.name for run in RUNS], help="only this run")
    parser.add_argument("--record", action="store_true", help="keep the recordings, which `./dev test` reads")
    parser.add_argument("--table", action="store_true", help="run nothing: write the table of docs/stock-scheduler.md")
    given = parser.parse_args()
    if given.table:
        return _write_table()
    minors = given.version or list(VERSIONS)
    if missing := _missing(minors):
        print(f"versions: needs {missing}; tests/reconstruction/versions/build.sh builds it with Go", file=sys.stderr)
        return 2
    runs = [run for run in RUNS if not given.run or run.name in given.run]
    with tempfile.TemporaryDirectory() as folder:
        found = _play(Path(folder), [Recording(Path(folder), minor, run) for minor in minors for run in runs])
        if given.record:
            shutil.copytree(Path(folder), RECORDED, dirs_exist_ok=True, ignore=shutil.ignore_patterns("control-plane"))
    return 1 if found else 0


def _missing(minors: list[str]) -> str:
    assets = Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS)
    needed = [assets / "etcd", assets / "kube-apiserver", *map(program, minors)]
    return ", ".join(str(path) for path in needed if not path.exists())


def _play(folder: Path, recordings: list[Recording]) -> list[str]:
    """Make recordings and print how each compares; return the differences."""
    (folder / "control-plane").mkdir()
    plane = ControlPlane(Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS), folder / "control-plane")
    found: list[str] = []
    try:
        plane.start()
        prepare(plane.api)
        for number, recording in enumerate(recordings):
            Stage(plane, recording.minor).play(recording, f"shop-{number}")
            wrong = differences(recording)
            found += wrong
            print(f"{VERSIONS[recording.minor]:8} {recording.run.name:10} {dict(recording.counted)}", flush=True)
            for each in wrong:
                print(f"  {each}", flush=True)
    finally:
        plane.stop()
    return found


def _write_table() -> int:
    recordings = {(minor, run.name): Recording(RECORDED, minor, run) for minor in VERSIONS for run in RUNS}
    text = table(lambda minor, name: recordings[minor, name])
    DOCUMENT.write_text(replaced(DOCUMENT.read_text("utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
