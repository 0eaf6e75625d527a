"""The contracts between the rooms bite: a planted violation is found, and the tree as it stands has none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("src", "receivers", "processors", "exporters", "extensions", "instrumentation", "kubernetes", "scheduler")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the rooms and their contracts."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(house: Path) -> "subprocess.CompletedProcess[str]":
    search = os.pathsep.join(str(house / room) for room in ROOMS)
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=house,
        env=os.environ | {"PYTHONPATH": search},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def plant(house: Path, module: str, line: str) -> None:
    path = house / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")


def test_the_tree_keeps_its_contracts(house: Path) -> None:
    done = lint(house)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract", "shown"),
    [
        (
            "processors/podtrail_processors/batch.py",
            "import time",
            "Processors own no clock, no task, no socket",
            "podtrail_processors.batch -> time",
        ),
        (
            "src/podtrail/service/service.py",
            "from podtrail_receivers import otlp",
            "The core never imports a component package",
            "podtrail.service.service -> podtrail_receivers",
        ),
        (
            "src/podtrail/otlp/batch.py",
            "import podtrail.config",
            "The rooms, from the top",
            "podtrail.otlp.batch -> podtrail.config",
        ),
        (
            "scheduler/podtrail_scheduler/cycles/cache.py",
            "import podtrail.otlp",
            "Instrumentation and scheduler know nothing of the pipeline",
            "podtrail_scheduler.cycles.cache -> podtrail.otlp",
        ),
        (
            "kubernetes/podtrail_kubernetes/reflector.py",
            "import podtrail_instrumentation",
            "What talks to an API server knows neither pipeline nor scheduler nor spans",
            "podtrail_kubernetes.reflector -> podtrail_instrumentation",
        ),
        (
            "receivers/podtrail_receivers/scheduler/kube_scheduler/log.py",
            "import podtrail_scheduler",
            "No receiver imports the scheduler but the one that runs it",
            "podtrail_receivers.scheduler.kube_scheduler.log -> podtrail_scheduler",
        ),
        (
            "exporters/podtrail_exporters/debug.py",
            "import google.protobuf",
            "Only podtrail.otlp knows a field number",
            "podtrail_exporters.debug -> google",
        ),
        (
            "processors/podtrail_processors/filter/processor.py",
            "import podtrail_processors.tail_sampling.holding",
            "Processors don't import each other; what several use stands beside them",
            "podtrail_processors.filter.processor -> podtrail_processors.tail_sampling.holding",
        ),
        (
            "processors/podtrail_processors/tail_sampling/holding/bounds.py",
            "import podtrail_processors.tail_sampling.leaving.releaser",
            "The rooms of tail_sampling, from the top",
            "podtrail_processors.tail_sampling.holding.bounds -> podtrail_processors.tail_sampling.leaving.releaser",
        ),
        (
            "scheduler/podtrail_scheduler/framework/status.py",
            "import podtrail_scheduler.queueing.queue",
            "The scheduler's rooms, from the top",
            "podtrail_scheduler.framework.status -> podtrail_scheduler.queueing.queue",
        ),
        (
            "scheduler/podtrail_scheduler/plugins/node_name.py",
            "import podtrail_scheduler.plugins.node_ports",
            "Scheduler plugins share rooms, not each other's modules",
            "podtrail_scheduler.plugins.node_name -> podtrail_scheduler.plugins.node_ports",
        ),
        (
            "scheduler/podtrail_scheduler/plugins/node_name.py",
            "import podtrail_scheduler.queueing.queue",
            "Scheduler plugins need the framework's types and nothing above",
            "podtrail_scheduler.plugins.node_name -> podtrail_scheduler.queueing.queue",
        ),
        (
            "scheduler/podtrail_scheduler/cluster/simulated/watch.py",
            "import podtrail_scheduler.cluster.kubernetes.clock",
            "The simulated cluster and the real one don't know each other",
            "podtrail_scheduler.cluster.simulated.watch -> podtrail_scheduler.cluster.kubernetes.clock",
        ),
    ],
)
def test_a_planted_violation_breaks_its_contract(
    house: Path, module: str, line: str, contract: str, shown: str
) -> None:
    plant(house, module, line)
    done = lint(house)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout
    assert shown in " ".join(done.stdout.split())
