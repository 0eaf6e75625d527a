"""`.ci/run` on a project whose `./dev` is a script: what is retried, left out and told, and the exit code."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = ["bash", "grep", "sh", "env", "git", "sed", "tail", "head", "cut", "cat", "rm", "mkdir", "mktemp", "timeout"]
PROGRAMS += ["sha256sum", "id", "cp", "basename", "printf", "true", "dirname"]
DEV = r"""#!/bin/sh
# Fails what FAILS names, "once" or "always", in the records of --record-to.
echo "$HOME $XDG_CACHE_HOME $PODTRAIL_NATIVE ./dev $*" >>"$CALLS"
command=$1 record=""
while [ $# -gt 0 ]; do
  case $1 in --record-to=*) record=${1#*=} ;; esac
  shift
done
[ "$command" != "$FAILS_STEP" ] || { echo "what $command says"; exit 1; }
[ -n "$record" ] || exit 0
name=$(basename "$record" .jsonl)
outcome=passed
case $FAILS in "${name%.retry} always") outcome=failed ;; "$name once") outcome=failed ;; esac
printf '{"name": "tests/a/test_a.py::test_it", "when": "call", "outcome": "%s", "seconds": 61, "cpu": 1,' \
  $outcome >"$record"
printf ' "processes": 1, "ended": 1, "text": "assert 1 == 2\\n--- end of server.log\\n%s"}\n' \
  "$(printf 'a line\\n%.0s' 1 2 3 4 5 6 7 8 9)server: no room" >>"$record"
[ $outcome = passed ]
"""


class Project:
    """A clone of a small project with .ci/run."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder / "project"
        self.calls = folder / "calls"
        for name in (".ci/run", "tools/test_summary.py"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self.folder / name)
        for name, script in (("dev", DEV), (".ci/python", "#!/bin/sh\nexit 1\n")):
            (self.folder / name).write_text(script, encoding="utf-8")
            (self.folder / name).chmod(0o755)
        (self.folder / ".gitignore").write_text(".venv\nout\n", encoding="utf-8")
        (self.folder / "src").mkdir()
        (self.folder / "src" / "a.py").touch()
        self._path = folder / "bin"
        self._path.mkdir()
        for program in PROGRAMS:
            (self._path / program).symlink_to(shutil.which(program) or f"/bin/{program}")
        self._git("init", "-q")
        self._git("add", "-A")
        self._git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
        python = self.folder / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, check=True, timeout=60)

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run .ci/run; both outputs come as one."""
        self.calls.write_text("", encoding="utf-8")
        variables = {"PATH": str(self._path), "HOME": str(self.folder.parent), "CALLS": str(self.calls), **environment}
        return subprocess.run(
            ["bash", ".ci/run", *arguments],
            cwd=self.folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )

    def suites(self) -> str:
        """Return what `./dev` was called with."""
        return self.calls.read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, root: Path) -> Project:
    """A project in which everything passes, on a machine that has nothing but git."""
    return Project(tmp_path, root)


def test_a_run_in_which_all_passes_says_what_it_took_and_left_out(project: Project) -> None:
    done = project.run()
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert "minutes  CPU min  tests  skipped  suite" in lines
    assert any(line.endswith("fresh") for line in lines)
    assert "LEFT OUT kafka: there is no Java with Maven" in lines
    assert "LEFT OUT podtrail-native: there is no cargo" in lines
    assert "2 passed, 0 failed, 0 skipped" in lines


def test_the_tests_run_once_as_on_a_fresh_machine(project: Project) -> None:
    project.run()
    (fresh,) = [line.split() for line in project.suites().splitlines() if line.endswith("fresh.jsonl")]
    assert fresh[2:5] == ["./dev", "test", "-o"]
    assert fresh[0].endswith("/home")
    assert fresh[1].endswith("/cache")
    assert fresh[0] != str(project.folder.parent)


def test_what_passes_when_tried_again_is_called_flaky(project: Project) -> None:
    done = project.run(FAILS="fresh once")
    assert done.returncode == 0, done.stdout
    assert "FLAKY tests/a/test_a.py::test_it (fresh): failed, and passed when tried again" in done.stdout


def test_a_failure_explains_itself_in_the_last_lines(project: Project) -> None:
    done = project.run(FAILS="fresh always")
    last = "\n".join(done.stdout.splitlines()[-100:])
    assert done.returncode == 1
    assert "FAILED tests/a/test_a.py::test_it (61 s) repeat: ./dev test -n0 'tests/a/test_a.py::test_it'" in last
    assert "assert 1 == 2" in last
    assert "server: no room" in last
    assert "FAILED fresh, repeat: ./dev test" in last
    assert "exit code 1" in last.splitlines()[-1]


def test_a_step_that_fails_is_shown_and_the_others_run(project: Project) -> None:
    done = project.run(FAILS_STEP="lint")
    assert done.returncode == 1
    assert "FAILED lint, repeat: ./dev lint\n  what lint says" in done.stdout
    assert "2 passed, 0 failed" in done.stdout


def test_what_takes_long_runs_again_only_after_a_change_or_when_asked_to(project: Project) -> None:
    assert "./dev bench soak" in (project.run(), project.suites())[1]
    again = project.run()
    assert "./dev bench soak" not in project.suites()
    assert "LEFT OUT soak: what it tries has not changed since it passed here (.ci/run --all runs it)" in again.stdout
    assert "./dev bench soak" in (project.run("--all"), project.suites())[1]
    (project.folder / "src" / "a.py").write_text("changed = 1\n", encoding="utf-8")
    subprocess.run(["git", "add", "-A"], cwd=project.folder, check=True, timeout=60)
    assert "./dev bench soak" in (project.run(), project.suites())[1]
