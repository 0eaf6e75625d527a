"""What podtrail-scheduler writes, says and returns: in this process, and once as one of its own."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from podtrail_scheduler.command.main import main

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PLUGIN = """
class Mine:
    name = "Mine"

    def __init__(self, handle, args=None):
        pass

    def filter(self, state, pod, node):
        return None
"""


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command is called in a folder of its own; how it logs ends with the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRPC_VERBOSITY", os.environ.get("GRPC_VERBOSITY", "NONE"))
    root, names = logging.getLogger(), ("podtrail_scheduler", "podtrail_kubernetes", "podtrail_instrumentation")
    before = root.handlers[:], root.level, {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:], root.level = before[0], before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.yaml"


def test_writes_the_configuration_completed_and_ends(file: Path, tmp_path: Path) -> None:
    file.write_text(HEAD + "profiles: [{schedulerName: podtrail}]\n")

    ended = run("--config", str(file), "--write-config-to", "written.yaml")

    assert ended.exit_code == 0, ended.stderr
    assert re.search(
        r'^I\d{4} [\d:.]+ +\d+ main\.py:\d+\] "Wrote configuration" file="written\.yaml"$', ended.stderr, re.MULTILINE
    )
    written = yaml.safe_load((tmp_path / "written.yaml").read_text())
    assert (written["podMaxBackoffSeconds"], written["profiles"][0]["schedulerName"]) == (10, "podtrail")


def test_says_what_is_wrong_and_where_and_ends_with_1(file: Path, tmp_path: Path) -> None:
    file.write_text(HEAD + "parallelism: 0\n")

    ended = run("--config", "scheduler.yaml", "--write-config-to", "written.yaml")

    said, logged = ended.stderr.splitlines()
    message = "parallelism: Invalid value: 0: should be an integer value greater than zero"
    assert said == f"scheduler.yaml:3:14: {message}"
    assert re.fullmatch(rf'E\d{{4}} [\d:.]+ +\d+ main\.py:\d+\] "command failed" err="{message}"', logged)
    assert (ended.exit_code, (tmp_path / "written.yaml").exists()) == (1, False)


def test_flags_of_leader_election_go_before_the_file(file: Path, tmp_path: Path) -> None:
    file.write_text(HEAD + "leaderElection: {leaseDuration: 30s, resourceName: a}\n")
    flags = ("--leader-elect=false", "--leader-elect-lease-duration", "1m", "--leader-elect-resource-name=b")

    run("--config", str(file), "--write-config-to", "written.yaml", *flags)

    written = yaml.safe_load((tmp_path / "written.yaml").read_text())["leaderElection"]
    assert (written["leaderElect"], written["leaseDuration"], written["resourceName"]) == (False, "1m0s", "b")


def test_without_a_file_flags_say_how_to_connect(tmp_path: Path) -> None:
    run("--kubeconfig", "k", "--kube-api-qps", "5", "--kube-api-burst=7", "--write-config-to", "written.yaml")

    written = yaml.safe_load((tmp_path / "written.yaml").read_text())["clientConnection"]
    assert (written["kubeconfig"], written["qps"], written["burst"]) == ("k", 5, 7)


def test_a_plugin_of_ones_own_is_named_on_the_command_line(file: Path, tmp_path: Path) -> None:
    file.write_text(HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}}]\n")
    (tmp_path / "mine.py").write_text(PLUGIN)
    arguments = ("--config", "scheduler.yaml", "--write-config-to", "written.yaml")

    # -P: as with the installed script, where the folder it is called in is not among those Python imports from.
    command = [sys.executable, "-P", "-m", "podtrail_scheduler.command.main", *arguments, "--plugin", "Mine=mine:Mine"]
    taken = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert taken.returncode == 0, taken.stderr
    unknown = run(*arguments)
    assert 'PreFilterPlugin "Mine" does not exist (install a package' in unknown.stderr
    missing = run(*arguments, "--plugin", "Mine=nowhere:Mine")
    assert "plugin Mine: nowhere:Mine: No module named 'nowhere'" in missing.stderr
    malformed = run(*arguments, "--plugin", "Mine")
    assert "--plugin Mine: NAME=MODULE:CLASS is wanted" in malformed.stderr
    assert [ended.exit_code for ended in (unknown, missing, malformed)] == [1, 1, 1]


def test_an_unknown_gate_is_refused() -> None:
    ended = run("--feature-gates", "Foo=true")

    assert ended.exit_code == 1
    assert '"command failed" err="unrecognized feature gate: Foo"' in ended.stderr


def test_tracing_without_its_gate_is_a_warning(file: Path, tmp_path: Path) -> None:
    file.write_text(HEAD + "tracing: {}\n")
    arguments = ("--config", str(file), "--write-config-to", "written.yaml")
    warning = "tracing is configured but has no effect: the feature gate SchedulerTracing is disabled"

    assert warning in run(*arguments).stderr
    assert warning not in run(*arguments, "--feature-gates=SchedulerTracing=true").stderr


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--leader-elect=maybe", 'for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("--leader-elect-retry-period=5", 'flag: time: missing unit in duration "5"'),
        ("-v=x", 'invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax'),
        ("--bogus", "No such option"),
        ("--secure-port=-1", "-1 is not in the range 0<=x<=65535"),
        ("--secure-port=65536", "65536 is not in the range 0<=x<=65535"),
        ("argument", "unexpected extra argument"),
    ],
)
def test_wrong_usage_ends_with_2(flag: str, message: str) -> None:
    ended = run(flag)

    assert ended.exit_code == 2
    assert message in ended.stderr


def test_verbosity_shows_flags_and_configuration() -> None:
    ended = run("--write-config-to", "written.yaml", "-v=2")

    assert '] FLAG: --write-config-to="written.yaml"\n' in ended.stderr
    assert '] "Using component config" config=<\n\tapiVersion: kubescheduler.config.k8s.io/v1\n' in ended.stderr


def test_it_goes_on_trying_an_api_server_that_is_not_there_until_it_is_told_to_end(tmp_path: Path) -> None:
    flags = ("--master", "http://127.0.0.1:1", "--leader-elect=false", "--secure-port=0", "--bind-address=127.0.0.1")
    command = [sys.executable, "-m", "podtrail_scheduler.command.main", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        watchdog = threading.Timer(120, started.kill)
        watchdog.start()
        try:
            assert any("Cannot connect to host 127.0.0.1:1" in line for line in started.stderr)
            started.send_signal(signal.SIGTERM)
            started.stderr.read()
            assert started.wait() == 0
        finally:
            watchdog.cancel()


def test_says_its_version_and_whom_it_follows() -> None:
    assert re.fullmatch(r"podtrail-scheduler [\d.]+ \(Kubernetes v1\.37\.1\)\n", run("--version").stdout)
