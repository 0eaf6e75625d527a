"""docs/trace.md: its session, typed at a real API server."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from tests.envtest.control_plane import DEADLINE, ControlPlane

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")
VARIES = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+\.\d\d s")


def session() -> list[tuple[str, str]]:
    """Return the commands of the page's first console, each with what is printed under it.

    The second needs a node: tests/cli/trace/test_trace_on_a_node.py.
    """
    found = re.search(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    parts = re.split(r"^\$ (.*)\n", found[1], flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.control_plane
def test_its_session_is_what_one_sees(control_plane: ControlPlane, kubectl: Path, tmp_path: Path) -> None:
    namespace = control_plane.api.namespace("trace-page")
    home = tmp_path / "home"
    home.mkdir()
    path = os.pathsep.join((str(Path(sys.executable).parent), str(kubectl.parent), os.environ["PATH"]))
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    environ |= {"PATH": path, "KUBECONFIG": str(control_plane.kubeconfig), "HOME": str(home)}
    chosen = [str(kubectl), "config", "set-context", "--current", f"--namespace={namespace}"]
    copied = tmp_path / "kubeconfig"
    copied.write_bytes(control_plane.kubeconfig.read_bytes())
    environ["KUBECONFIG"] = str(copied)
    subprocess.run(chosen, env=environ, check=True, capture_output=True, timeout=DEADLINE)
    for command, shown in session():
        done = subprocess.run(
            shlex.split(command),
            env=environ,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
        assert VARIES.sub("*", done.stdout).replace(f"{namespace}/", "default/") == VARIES.sub("*", shown)


def test_its_table_has_every_option() -> None:
    told = CliRunner().invoke(main, ["trace", "--help"]).stdout
    options = set(re.findall(r"(--[a-z-]+)", told)) - {"--help"}
    assert options == {option for option in re.findall(r"`(--[a-z-]+)[^`]*`", PAGE) if option in options}
