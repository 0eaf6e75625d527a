"""`./dev`, CI and the lock files: what a fresh clone begins with."""

import os
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

LOCKS = ("build.txt", "dev.txt", "native.txt", "runtime.txt")


def requirements(lock: Path) -> list[str]:
    """Return a lock's requirements, continuation lines joined, comments left out."""
    text = re.sub(r"^\s*#.*\n?", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_is_pinned_and_hashed(root: Path, lock: str) -> None:
    lines = requirements(root / "locks" / lock)
    assert lines
    for line in lines:
        assert re.match(r"[A-Za-z0-9._-]+==\S+( ; [^\\]*?)? +--hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_a_host(root: Path, lock: str) -> None:
    text = (root / "locks" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    assert "find-links" not in text


def test_the_locks_hold_what_the_project_asks_for(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    locked = {lock: set(map(name, requirements(root / "locks" / lock))) for lock in LOCKS}
    needed = set(map(name, project["project"]["dependencies"]))
    groups = project["dependency-groups"]
    developing = {name(one) for one in groups["dev"] if isinstance(one, str)}
    building = set(map(name, groups["build"]))
    native = tomllib.loads((root / "native/pyproject.toml").read_text(encoding="utf-8"))
    assert set(map(name, native["dependency-groups"]["wheel"])) <= locked["native.txt"]
    assert needed <= locked["runtime.txt"]
    assert needed | developing | building <= locked["dev.txt"]
    assert building <= locked["build.txt"]


def test_runtime_and_development_lock_the_same_versions(root: Path) -> None:
    def versions(lock: str) -> dict[str, str]:
        return {name(line): line.split()[0] for line in requirements(root / "locks" / lock)}

    runtime, developing = versions("runtime.txt"), versions("dev.txt")
    assert {key: developing.get(key) for key in runtime} == runtime


def test_dev_is_a_posix_shell_script(root: Path) -> None:
    assert (root / "dev").read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(root / "dev")], check=True, timeout=10)
    assert (root / "dev").stat().st_mode & 0o111


@pytest.mark.parametrize("arguments", [[], ["help"]])
def test_dev_alone_prints_help_and_sets_nothing_up(root: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "dev").write_bytes((root / "dev").read_bytes())
    done = subprocess.run(
        ["sh", "dev", *arguments], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=10
    )
    assert done.returncode == 0
    for command in ("run", "test", "lint", "format", "bench", "lock"):
        assert f"./dev {command}" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "dev"]


def test_dev_refuses_a_command_it_does_not_have(root: Path, tmp_path: Path) -> None:
    (tmp_path / "dev").write_bytes((root / "dev").read_bytes())
    done = subprocess.run(["sh", "dev", "dance"], cwd=tmp_path, check=False, capture_output=True, timeout=10)
    assert done.returncode == 2


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A clone whose Python makes an environment in which `podtrail` says where it runs and with what."""
    project = tmp_path / "a clone"
    (project / "locks").mkdir(parents=True)
    (project / "locks" / "dev.txt").touch()
    (project / "pyproject.toml").touch()
    (project / "tools").mkdir()
    for script in ("dev", "tools/tests_of.sh"):
        (project / script).write_bytes((root / script).read_bytes())
    python, podtrail = project / "python", project / "podtrail"
    podtrail.write_text('#!/bin/sh\necho "$PWD" "$@"\n')
    make = "mkdir -p .venv/bin; cp python .venv/bin/python; cp podtrail .venv/bin/podtrail"
    python.write_text(f'#!/bin/sh\ncase $* in "-m venv"*) {make} ;; "-m pytest"*) echo "$@" ;; esac\n')
    for program in (python, podtrail):
        program.chmod(0o755)
    return project


@pytest.mark.parametrize("arguments", [["--config", "good.yaml", "--json"], ["--config=good.yaml"]])
def test_dev_run_takes_a_configuration_from_where_the_caller_is(
    clone: Path, tmp_path: Path, arguments: list[str]
) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    done = dev(clone, elsewhere, "run", *arguments)
    assert done.stdout.split("\n")[0] == f"{elsewhere} run {' '.join(arguments)}", done.stderr
    assert "takes a minute or two" in done.stderr


def test_dev_run_without_a_configuration_runs_the_main_job_where_it_stands(clone: Path, tmp_path: Path) -> None:
    assert dev(clone, tmp_path, "run", "--json").stdout == f"{clone} run --config pipeline.yaml --json\n"


def test_dev_sets_up_once(clone: Path, tmp_path: Path) -> None:
    dev(clone, tmp_path, "run")
    assert dev(clone, tmp_path, "run").stderr == ""


def test_two_commands_in_a_new_clone_set_it_up_once(clone: Path, tmp_path: Path) -> None:
    python, made = clone / "python", tmp_path / "made"
    counts = f'case $* in "-m venv"*) echo made >>{made} ;; esac; sleep 0.2'
    python.write_text(f"{python.read_text(encoding='utf-8')}{counts}\n", encoding="utf-8")
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(dev, clone, tmp_path, "run") for _ in range(4)]
    assert {run.result().stdout for run in runs} == {f"{clone} run --config pipeline.yaml\n"}
    assert made.read_text(encoding="utf-8") == "made\n"


def test_dev_says_what_setting_up_needs_when_nothing_can_be_installed(clone: Path, tmp_path: Path) -> None:
    python = clone / "python"
    installs_nothing = 'case $* in *"pip install"*) echo "pip: no index" >&2; exit 1 ;; esac'
    python.write_text(f"{python.read_text(encoding='utf-8')}{installs_nothing}\n", encoding="utf-8")
    done = dev(clone, tmp_path, "run")
    assert done.returncode == 3
    assert "pip: no index" in done.stderr
    assert "setting up needs a package index" in done.stderr
    assert done.stdout == ""
    assert "takes a minute or two" in dev(clone, tmp_path, "run").stderr, "it was not set up"


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        pytest.param('"podtrail"', '"elsewhere"', True, id="the project's name"),
        pytest.param('dev-mode-dirs = ["src", ', 'dev-mode-dirs = ["src", "more", ', True, id="a source root"),
        pytest.param("line-length = 120", "line-length = 100", False, id="a tool's setting"),
    ],
)
def test_dev_sets_up_anew_when_what_is_installed_changed(
    root: Path, clone: Path, tmp_path: Path, before: str, after: str, anew: bool
) -> None:
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert before in project
    (clone / "pyproject.toml").write_text(project, encoding="utf-8")
    dev(clone, tmp_path, "run")
    (clone / "pyproject.toml").write_text(project.replace(before, after), encoding="utf-8")
    assert bool(dev(clone, tmp_path, "run").stderr) == anew


BUILDS = "mkdir -p native/target/release; echo built > native/target/release/libpodtrail_native.so"
FAILS = "echo '   Updating' >&2; echo 'error: failed to fetch: no network' >&2; echo 'Caused by: more' >&2; exit 101"


@pytest.mark.parametrize(
    ("cargo", "said", "installed"),
    [
        pytest.param(BUILDS, "a minute or two): done\n", True, id="it can be built"),
        pytest.param("exit 0", "No such file or directory); Python does its work\n", False, id="another system"),
        pytest.param(FAILS, "can't be (failed to fetch: no network); Python does its work\n", False, id="it can't"),
    ],
)
def test_dev_builds_the_extension_once_where_cargo_is(
    clone: Path, tmp_path: Path, cargo: str, said: str, installed: bool
) -> None:
    (clone / "native/src").mkdir(parents=True)
    for source in ("Cargo.toml", "Cargo.lock", "src/lib.rs"):
        (clone / "native" / source).touch()
    (tmp_path / "cargo").write_text(f"#!/bin/sh\n{cargo}\n", encoding="utf-8")
    (tmp_path / "cargo").chmod(0o755)
    site = clone / ".venv/lib/python3.11/site-packages"
    path = f"{tmp_path}:{os.environ['PATH']}"

    dev(clone, tmp_path, "run", PATH=path, PODTRAIL_NATIVE="off")
    site.mkdir(parents=True)
    first = dev(clone, tmp_path, "run", PATH=path)
    assert (first.returncode, first.stdout) == (0, f"{clone} run --config pipeline.yaml\n")
    assert first.stderr.endswith(said)
    assert first.stderr.count("\n") == 1
    assert dev(clone, tmp_path, "run", PATH=path).stderr == ""
    assert [path.name for path in site.iterdir()] == ["podtrail_native.abi3.so"] * installed

    (clone / "native/src/lib.rs").write_text("// changed\n", encoding="utf-8")
    assert dev(clone, tmp_path, "run", PATH=path).stderr.endswith(said)


def dev(clone: Path, directory: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = ["sh", str(clone / "dev"), *arguments]
    environment = {**os.environ, "PYTHON": str(clone / "python"), **environment}
    return subprocess.run(
        command, cwd=directory, env=environment, check=False, capture_output=True, text=True, timeout=10
    )


@pytest.fixture
def rooms(clone: Path) -> Path:
    """A clone that has tests."""
    for module in ("pipeline/sending/test_queue", "processors/latency/test_one", "conformance/latency/test_all"):
        path = clone / "tests" / f"{module}.py"
        path.parent.mkdir(parents=True)
        path.touch()
    return clone


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("pipeline", "tests/pipeline"),
        ("sending", "tests/pipeline/sending"),
        ("latency", "tests/conformance/latency tests/processors/latency"),
        ("processors/latency", "tests/processors/latency"),
        ("queue", "tests/pipeline/sending/test_queue.py"),
        ("src/podtrail/pipeline/sending", "tests/pipeline/sending"),
        ("src/podtrail/pipeline/sending/queue.py", "tests/pipeline/sending/test_queue.py"),
        ("processors/podtrail_processors/latency", "tests/processors/latency"),
        ("tests/pipeline", "tests/pipeline"),
        ("tests/pipeline/sending/test_queue.py::test_it", "tests/pipeline/sending/test_queue.py::test_it"),
        ("--last-failed", "--last-failed"),
    ],
)
def test_dev_test_finds_what_mirrors_a_room_and_passes_on_what_is_none(rooms: Path, asked: str, given: str) -> None:
    done = dev(rooms, rooms, "test", asked, "-k", "late")
    *chosen, option, value = done.stdout.removeprefix("-m pytest -n auto --dist worksteal").split()
    assert sorted(chosen) == given.split(), done.stderr
    assert (option, value) == ("-k", "late")


def test_dev_test_takes_several_rooms_before_the_options(rooms: Path) -> None:
    done = dev(rooms, rooms, "test", "processors/latency", "queue", "tests/pipeline", "-k", "a b")
    assert done.stdout == (
        "-m pytest -n auto --dist worksteal"
        " tests/processors/latency tests/pipeline/sending/test_queue.py tests/pipeline -k a b\n"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["queues"], "there is no room or module queues below tests/; did you mean queue?"),
        (["latency", "pipelin"], "there is no room or module pipelin below tests/; did you mean pipeline?"),
        (["zzz"], "there is no room or module zzz below tests/"),
        (["tests/pipeline/nosuch.py"], "there is no file tests/pipeline/nosuch.py"),
        (["tests/pipeline/nosuch.py::test_it"], "there is no file tests/pipeline/nosuch.py"),
    ],
)
def test_dev_test_says_of_a_word_that_is_none_what_was_meant(rooms: Path, asked: list[str], said: str) -> None:
    done = dev(rooms, rooms, "test", *asked)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dev: {said}\n")
