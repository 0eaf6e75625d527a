"""Signals reach the command, its exit code comes back, and nothing is left behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.trace.conftest import Start, until
from tests.envtest.control_plane import ControlPlane

pytestmark = pytest.mark.control_plane
SAYS = """
import os, signal, sys, time
def said(number, _):
    os.write(1, b"got %s\\n" % signal.Signals(number).name.encode())  # print may be what it interrupts
    sys.exit(5)
for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
    signal.signal(each, said)
os.write(1, f"{os.getpid()} {os.environ['KUBECONFIG']}\\n".encode())
time.sleep(300)
"""


def begun(start: Start, **options: object) -> tuple["subprocess.Popen[str]", int, Path]:
    process = start("--", sys.executable, "-c", SAYS, **options)
    assert process.stdout is not None
    pid, path = process.stdout.readline().split()
    assert Path(path).exists()
    return process, int(pid), Path(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_signals_are_passed_on_and_the_commands_exit_code_comes_back(number: signal.Signals, start: Start) -> None:
    process, _, path = begun(start, start_new_session=True)
    process.send_signal(number)
    out, _ = process.communicate(timeout=600)
    assert (process.returncode, out) == (5, f"got {number.name}\n")
    assert not path.parent.exists()


def test_a_command_that_is_killed_leaves_nothing_behind(start: Start) -> None:
    process, pid, path = begun(start)
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGKILL
    assert not path.parent.exists()


def test_a_signal_before_the_command_is_there_ends_it_and_leaves_nothing_behind(
    start: Start, plane: ControlPlane, tmp_path: Path
) -> None:
    version = "client.authentication.k8s.io/v1"
    plugin = {"apiVersion": version, "command": "sh", "args": ["-c", f"touch {tmp_path}/asked; exec sleep 300"]}
    kubeconfig = plane.write_kubeconfig(tmp_path / "of-user", {"exec": plugin})
    process = start("--kubeconfig", kubeconfig, "--", "touch", tmp_path / "ran")
    until((tmp_path / "asked").exists)
    assert list(tmp_path.glob("podtrail-trace-*"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert not list(tmp_path.glob("podtrail-trace-*"))
    assert not (tmp_path / "ran").exists()


def test_a_command_on_a_terminal_gets_ctrl_c_once_and_has_the_terminal(plane: ControlPlane) -> None:
    script = """
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
def until(text):
    global seen
    while text not in seen:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
until(b"ready")
os.write(terminal, b"\\x03")
until(b"podtrail: trace")
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), seen.count(b"interrupted"), b"tty True True True" in seen)
"""
    counting = """
import os, signal, sys, time
got = 0
def said(*_):
    global got
    got += 1
    os.write(1, b"interrupted\\n")
signal.signal(signal.SIGINT, said)
print("tty", *(os.isatty(number) for number in range(3)), "ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(1)
sys.exit(4)
"""
    command = [sys.executable, "-m", "podtrail", "trace", "--", sys.executable, "-c", counting]
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        env=os.environ | {"KUBECONFIG": str(plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == ["4", "1", "True"], done
