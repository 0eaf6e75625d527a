"""The contracts between the rooms bite: a planted violation is found, and the tree as it stands has none."""

import ast
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (
    "src",
    "receivers",
    "processors",
    "exporters",
    "extensions",
    "instrumentation",
    "kubernetes",
    "scheduler",
    "webhook",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the rooms and their contracts."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(tree: Path) -> "subprocess.CompletedProcess[str]":
    search = os.pathsep.join(str(tree / room) for room in ROOMS)
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": search},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def plant(tree: Path, module: str, line: str) -> None:
    path = tree / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")


def test_the_tree_keeps_its_contracts(tree: Path) -> None:
    done = lint(tree)
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
            "src/podtrail/pipeline/sending/queue.py",
            "import podtrail.pipeline.settings",
            "The pipeline's rooms, from the top",
            "podtrail.pipeline.sending.queue -> podtrail.pipeline.settings",
        ),
        (
            "src/podtrail/recording/splitting/lines.py",
            "import podtrail.recording.foreign",
            "The recording's rooms, from the top",
            "podtrail.recording.splitting.lines -> podtrail.recording.foreign",
        ),
        (
            "src/podtrail/testing/attempts/made.py",
            "import podtrail.testing.cases.text_reader",
            "The rooms of testing, from the top",
            "podtrail.testing.attempts.made -> podtrail.testing.cases.text_reader",
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
def test_a_planted_violation_breaks_its_contract(tree: Path, module: str, line: str, contract: str, shown: str) -> None:
    plant(tree, module, line)
    done = lint(tree)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout
    assert shown in " ".join(done.stdout.split())


def modules(room: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield each module of a source root: its name, its package's, its file."""
    for path in sorted(room.rglob("*.py")):
        *parents, name = path.relative_to(room).with_suffix("").parts
        package = ".".join(parents)
        yield (package if name == "__init__" else f"{package}.{name}"), package, path


def imports(path: Path, package: str) -> Iterator[tuple[str, ...]]:
    """Yield what each import of a file may mean, likeliest first; those for types and within functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{origin}.{alias.name}", origin) for alias in node.names)


def two_way_packages(root: Path) -> list[str]:
    """Return the pairs of packages that import each other, each with an import either way."""
    package_of: dict[str, str] = {}
    files: dict[str, Path] = {}
    for room in ROOMS:
        for module, package, path in modules(root / room):
            package_of[module], files[module] = package, path
    between: dict[tuple[str, str], str] = defaultdict(str)
    for module, path in files.items():
        for meanings in imports(path, package_of[module]):
            target = next((name for name in meanings if name in package_of), None)
            if target is not None and package_of[target] != package_of[module]:
                between[package_of[module], package_of[target]] = f"{module} imports {target}"
    return [
        f"{here} <-> {there}: {line}, {between[there, here]}"
        for (here, there), line in sorted(between.items())
        if here < there and (there, here) in between
    ]


def test_no_two_packages_import_each_other() -> None:
    assert two_way_packages(ROOT) == []


def test_a_planted_import_back_is_found(tree: Path) -> None:
    plant(tree, "src/podtrail/pipeline/sending/plan.py", "from podtrail.pipeline import clock")
    (found,) = two_way_packages(tree)
    assert found.startswith("podtrail.pipeline <-> podtrail.pipeline.sending: ")
    assert found.endswith("podtrail.pipeline.sending.plan imports podtrail.pipeline.clock")
