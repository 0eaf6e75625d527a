"""The matrix of `./dev versions`: which kube-schedulers run how, and where it is recorded."""

import gzip
import json
import re
from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.built import BUILT

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE.parents[1] / "data" / "kube-scheduler" / "versions"
_MODULES: Final = {
    "1.35": HERE / "1.35" / "go.mod",
    "1.36": HERE / "1.36" / "go.mod",
    "1.37": HERE.parents[1] / "envtest" / "go.mod",
}
"""By minor release: the oldest and newest that are supported upstream, and the one between them."""
_PINNED: Final = re.compile(r"^\s*(?:require )?k8s\.io/kubernetes v(\S+)$", re.MULTILINE)
LOUD: Final = 2
"""The verbosity from which on a log has a line for each attempt."""


def _pinned(module: Path) -> str:
    found = _PINNED.search(module.read_text())
    assert found, module
    return found[1]


VERSIONS: Final = {minor: _pinned(module) for minor, module in _MODULES.items()}


def program(minor: str) -> Path:
    """Return where the kube-scheduler of a minor release is, if it was built."""
    if minor == "1.37":
        return BUILT / f"envtest-{VERSIONS[minor]}" / "kube-scheduler"
    return BUILT / f"kube-scheduler-{VERSIONS[minor]}"


class Run(NamedTuple):
    """How a scheduler is run."""

    name: str
    verbosity: int
    zone: str
    """TZ of its process."""
    format: str = "text"
    story: str = "plain"
    """`plain`; `changed`: `-v` is raised and lowered; `handover`: two schedulers, whose leader changes;
    `turned`: the leader's `-v` is lowered before it changes."""


RUNS: Final = (
    Run("v0", 0, "America/St_Johns"),
    Run("v2", 2, "Asia/Kolkata"),
    Run("v3", 3, "America/St_Johns"),
    Run("v5", 5, "UTC"),
    Run("v10", 10, "Asia/Kolkata"),
    Run("json", 5, "America/St_Johns", format="json"),
    Run("changed", 2, "Asia/Kolkata", story="changed"),
    Run("handover", 2, "America/St_Johns", story="handover"),
    Run("turned", 5, "Asia/Kolkata", story="turned"),
)


class Quiet(NamedTuple):
    """What happened at less than `-v=2`, where a log does not tell of each attempt."""

    scheduler: str
    counted: Counter[str]
    since: int
    until: int


class Recording:
    """What the schedulers of one run left behind, in a folder."""

    def __init__(self, folder: Path, minor: str, run: Run) -> None:
        self.folder = folder / minor
        self.minor = minor
        self.run = run

    @property
    def logs(self) -> list[Path]:
        """The log of each scheduler."""
        return [self.log(name) for name in self.counted_by]

    def log(self, scheduler: str) -> Path:
        """Return the file of a scheduler's log."""
        return self.folder / f"{self.run.name}.{scheduler}.log.gz"

    def watch(self, kind: str) -> Path:
        """Return the file of a watch: `pods` or `events`."""
        return self.folder / f"{self.run.name}.{kind}.jsonl.gz"

    @property
    def truth(self) -> Path:
        """The file of what the schedulers counted and the Pods that were bound."""
        return self.folder / f"{self.run.name}.json"

    @cached_property
    def _truth(self) -> Any:
        return json.loads(self.truth.read_text())

    @property
    def counted_by(self) -> dict[str, dict[str, int]]:
        """Attempts by result, as each scheduler counted them."""
        return dict(self._truth["counted"])

    @property
    def counted(self) -> Counter[str]:
        """Attempts by result, as all schedulers counted them."""
        return sum(map(Counter, self.counted_by.values()), Counter[str]())

    @property
    def quiet(self) -> Quiet:
        """Which attempts were counted at less than `-v=2`, and when that was, in Unix nanoseconds."""
        told = self._truth["quiet"]
        return Quiet(told["scheduler"], Counter(told["counted"]), told["since"], told["until"])

    @property
    def bound(self) -> dict[str, str]:
        """The node of each Pod that was bound and still existed at the end."""
        return dict(self._truth["bound"])

    @cached_property
    def began(self) -> int:
        """When it began, Unix nanoseconds."""
        return int(json.loads(self.lines(self.watch("pods"))[0])["arrivalUnixNano"])

    @property
    def year(self) -> int:
        """The year in which it was recorded."""
        return datetime.fromtimestamp(self.began / 1e9, UTC).year

    def lines(self, path: Path) -> list[bytes]:
        """Return the lines of one of the files."""
        return gzip.decompress(path.read_bytes()).splitlines()
