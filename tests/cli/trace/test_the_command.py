"""What the traced command is given, what it may not say, and what becomes of one that can't be run."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from tests.cli.trace.conftest import Done, Start

Trace = Callable[..., Done]


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """A kubeconfig of an API server that nobody asks."""
    cluster = {"name": "k", "cluster": {"server": "http://127.0.0.1:9"}}
    user = {"name": "u", "user": {"token": "secret"}}
    context = {"name": "c", "context": {"cluster": "k", "user": "u"}}
    config = {"current-context": "c", "clusters": [cluster], "users": [user], "contexts": [context]}
    path = tmp_path / "nowhere"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"} | config))
    return {"KUBECONFIG": str(path)}


@pytest.fixture
def here(nowhere: dict[str, str], capfd: pytest.CaptureFixture[str]) -> Trace:
    """Runs `podtrail trace` to its end in this process, with the kubeconfig of nowhere."""

    def it(*arguments: object, **environ: str) -> Done:
        without: dict[str, str | None] = {key: None for key in os.environ if key.startswith(("OTEL_", "KUBE"))}
        runner = CliRunner(env={**without, **nowhere, **environ})
        result = runner.invoke(main, ["trace", "--", *map(str, arguments)])
        return Done(result.exit_code, capfd.readouterr().out, result.stderr)

    return it


@pytest.fixture
def helm(tmp_path: Path) -> Path:
    """A program of that name."""
    path = tmp_path / "helm"
    path.write_text("#!/bin/sh\necho $*\n")
    path.chmod(0o755)
    return path


def test_a_program_that_cannot_be_run_is_told(here: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = tmp_path / "program"
    program.write_text("neither a script nor a program\n")
    program.chmod(0o755)
    done = here(program)
    assert (done.code, done.told) == (126, f"podtrail: {program}: can't be run: Exec format error\n")
    assert not list(tmp_path.glob("podtrail-trace-*"))


def test_the_exit_code_is_the_commands_when_nobody_reads_what_is_told(start: Start, nowhere: dict[str, str]) -> None:
    process = start("--", sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)", environ=nowhere)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(600) == 3


@pytest.mark.parametrize("argument", ["-shttps://127.0.0.1:1", "-s=https://127.0.0.1:1", "--server=x", "--token=x"])
def test_what_would_go_past_the_proxy_is_refused(here: Trace, argument: str) -> None:
    done = here("kubectl", "get", "pods", argument)
    assert done.code == 2
    assert "before the command: podtrail trace --kubeconfig FILE" in " ".join(done.told.split())
    assert "podtrail: trace" not in done.told


def test_helm_may_say_which_templates_it_shows(here: Trace, helm: Path) -> None:
    done = here(helm, "template", ".", "-s", "templates/x.yaml")
    assert (done.code, done.out) == (0, "template . -s templates/x.yaml\n")


@pytest.mark.parametrize("name", ["HELM_KUBEAPISERVER", "HELM_KUBETOKEN"])
def test_an_environment_that_leads_helm_past_the_proxy_is_refused(here: Trace, helm: Path, name: str) -> None:
    done = here(helm, "list", **{name: "x"})
    assert done.code == 2
    assert f"with {name} in the environment" in " ".join(done.told.split())
    assert here("true", **{name: "x"}).code == 0


@pytest.mark.parametrize(("given", "told"), [({}, "127.0.0.1"), ({"no_proxy": "a.example"}, "a.example,127.0.0.1")])
def test_no_http_proxy_is_asked_for_what_leads_to_podtrail(here: Trace, given: dict[str, str], told: str) -> None:
    variables = {"NO_PROXY": "", "no_proxy": "", "HTTPS_PROXY": "http://127.0.0.1:9"} | given
    done = here("sh", "-c", "echo $NO_PROXY $no_proxy $HTTPS_PROXY", **variables)
    assert done.out == f"{told} {told} http://127.0.0.1:9\n"
    assert "secret" not in done.out + done.told


def test_the_credentials_are_in_neither_environment_nor_arguments(trace: Trace, nowhere: dict[str, str]) -> None:
    script = """
import os
for process in ("self", os.getppid()):
    for file in ("environ", "cmdline"):
        print(b"sec" + b"ret" in open(f"/proc/{process}/{file}", "rb").read(), sorted(os.listdir("/proc/self/fd"))[:3])
"""
    done = trace("--", sys.executable, "-c", script, environ=nowhere)
    assert done.out.splitlines() == ["False ['0', '1', '2']"] * 4
