"""What shells complete, in the shells themselves as far as they are installed."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from podtrail.cli import main
from tests.running_page import running_page

PODTRAIL = Path(sys.executable).parent
VIEWER = """
for name in ("web-0", "web-$(touch pwned)", "*"):
    batch = no_room(uid=name, name=name).batch()
    batch.verdicts[0].votes = {"failed": "sampled"}
    viewer.observe("traces", batch)
viewer.observe("traces", MadeAttempt(uid="bound", name="bound").batch())
"""
BASH = (
    "source <(podtrail completion bash)\n",
    """
COMP_WORDS=({words}); COMP_CWORD=$(({last})); COMPREPLY=()
_podtrail_completion podtrail
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
)
# compsys is no part of what is asked here: what is handed to it is printed.
ZSH = (
    """
compdef() { : }
compadd() { print -rl -- "${(@P)5}" }
_describe() { print -rl -- "${(@P)3}" }
source <(podtrail completion zsh)
""",
    "words=({words}); CURRENT=$(({last} + 1)); _podtrail_completion\n",
)
FISH = ("podtrail completion fish | source\n", "complete --do-complete {line}\n")
"""What a shell does first, and for each completion."""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a running page."""
    with running_page(VIEWER) as running:
        yield running.address


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}: apt install {name}")
    return name


def run(shell: str, script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    return subprocess.run(
        [shell, *options, "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{PODTRAIL}:{os.environ['PATH']}", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_shell_offers_options_and_no_name_that_it_would_act_on(shell: str, tmp_path: Path, page: str) -> None:
    asked = [["tap", "--pol"], ["why", "pod", "--endpoint", page, "we"]]
    begin, each = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]
    script = begin
    for typed in asked:
        words = ["podtrail", *typed]
        line = shlex.quote(" ".join(words))
        script += each.format(words=shlex.join(words), last=len(words) - 1, line=line) + "echo ,,\n"
    done = run(shell, script, tmp_path)
    assert shell == "fish" or done.stderr == ""  # fish speaks of the terminal it does not have
    offered = [line.partition("\t")[0].partition(":")[0] for line in done.stdout.splitlines() if line]
    assert offered == ["--policy", ",,", "web-0", ",,"]
    assert not (tmp_path / "pwned").exists()


def completed(*typed: str) -> set[str]:
    """Return what is offered for the last of the words that are typed behind `podtrail`, in any shell."""
    *before, last = typed
    return {item.value for item in ShellComplete(main, {}, "podtrail", "_").get_completions(before, last)}


def test_commands_options_values_and_components() -> None:
    assert completed("why", "p") == {"pod", "pending", "plugin"}
    assert completed("re") >= {"replay", "record", "recording", "reconstruct"}
    assert completed("completion", "") == {"bash", "zsh", "fish"}
    assert completed("run", "--set", "processors.tail") == {"processors.tail_sampling."}


def test_names_of_a_running_page(page: str) -> None:
    asked = ("--endpoint", page)
    assert completed("why", "pod", *asked, "default/w") == {"default/web-0"}
    assert completed("report", "pod", *asked, "we") == {"web-0"}
    assert completed("report", "pod", *asked, "-n", "d") == {"default"}
    assert completed("why", "plugin", *asked, "nodea") == {"NodeAffinity"}
    assert completed("why", "node", *asked, "node-0") == {"node-07"}
    assert completed("tap", *asked, "--policy", "f") == {"failed"}
    assert completed("why", "pod", "--endpoint", "http://127.0.0.1:9", "we") == set()


def test_fish_shows_descriptions_to_their_end(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish: apt install fish")
    begin, each = FISH
    done = run("fish", begin + each.format(line=shlex.quote("podtrail to")), tmp_path)
    (offered,) = done.stdout.splitlines()
    assert offered.startswith("top\tShow what goes on in a running podtrail: attempts, ")
