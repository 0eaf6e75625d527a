"""The contracts between the rooms bite: a planted violation is found, and the tree as it stands has none."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.docs.rooms import SOURCE_ROOTS

ROOT = Path(__file__).parents[2]


PLANTED = (
    ("processors/podtrail_processors/batch.py", "time", "Processors own no clock, no task, no socket"),
    ("src/podtrail/service/service.py", "podtrail_receivers", "The core never imports a component package"),
    ("src/podtrail/otlp/batch.py", "podtrail.config", "The rooms, from the top"),
    (
        "scheduler/podtrail_scheduler/cycles/cache.py",
        "podtrail.otlp",
        "Instrumentation and scheduler know nothing of the pipeline",
    ),
    (
        "kubernetes/podtrail_kubernetes/reflector.py",
        "podtrail_instrumentation",
        "What talks to an API server knows neither pipeline nor scheduler nor spans",
    ),
    (
        "receivers/podtrail_receivers/scheduler/kube_scheduler/log.py",
        "podtrail_scheduler",
        "No receiver imports the scheduler but the one that runs it",
    ),
    ("src/podtrail/pipeline/sending/queue.py", "podtrail.pipeline.settings", "The pipeline's rooms, from the top"),
    ("src/podtrail/recording/splitting/lines.py", "podtrail.recording.foreign", "The recording's rooms, from the top"),
    (
        "src/podtrail/testing/attempts/made.py",
        "podtrail.testing.cases.text_reader",
        "The rooms of testing, from the top",
    ),
    ("exporters/podtrail_exporters/debug.py", "google", "Only podtrail.otlp knows a field number"),
    (
        "processors/podtrail_processors/filter/processor.py",
        "podtrail_processors.tail_sampling.holding",
        "Processors don't import each other; what several use stands beside them",
    ),
    (
        "processors/podtrail_processors/tail_sampling/holding/bounds.py",
        "podtrail_processors.tail_sampling.leaving.releaser",
        "The rooms of tail_sampling, from the top",
    ),
    (
        "scheduler/podtrail_scheduler/framework/status.py",
        "podtrail_scheduler.queueing.queue",
        "The scheduler's rooms, from the top",
    ),
    (
        "scheduler/podtrail_scheduler/plugins/node_name.py",
        "podtrail_scheduler.plugins.node_ports",
        "Scheduler plugins share rooms, not each other's modules",
    ),
    (
        "scheduler/podtrail_scheduler/plugins/node_name.py",
        "podtrail_scheduler.queueing.queue",
        "Scheduler plugins need the framework's types and nothing above",
    ),
    (
        "scheduler/podtrail_scheduler/cluster/simulated/watch.py",
        "podtrail_scheduler.cluster.kubernetes.clock",
        "The simulated cluster and the real one don't know each other",
    ),
)
"""A module, what it imports in addition, and the contract that this breaks."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The contracts that are broken in a copy of the rooms with all violations, each with what is shown of it."""
    tree = tmp_path_factory.mktemp("rooms")
    for room in SOURCE_ROOTS:
        shutil.copytree(ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    for module, imported, _ in PLANTED:
        with (tree / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {imported}\n")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(tree / room) for room in SOURCE_ROOTS)},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1, done.stderr
    parts = re.split(r"^(.+)\n-+\n", done.stdout.partition("Broken contracts\n")[2], flags=re.MULTILINE)
    return {name: " ".join(shown.split()) for name, shown in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(("module", "imported", "contract"), PLANTED)
def test_a_planted_violation_breaks_its_contract(
    broken: dict[str, str], module: str, imported: str, contract: str
) -> None:
    name = module.partition("/")[2].removesuffix(".py").replace("/", ".")
    assert f"{name} -> {imported}" in broken[contract]


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
    for room in SOURCE_ROOTS:
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


def test_a_planted_import_back_is_found(tmp_path: Path) -> None:
    for module, line in {
        "__init__": "",
        "clock": "",
        "sending/__init__": "",
        "sending/plan": "from above import clock",
    }.items():
        path = tmp_path / "src" / "above" / f"{module}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(line)
    (tmp_path / "src/above/queue.py").write_text("import above.sending.plan")
    assert two_way_packages(tmp_path) == [
        "above <-> above.sending: above.queue imports above.sending.plan, above.sending.plan imports above.clock"
    ]
