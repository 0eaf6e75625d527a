"""What shells complete, in the shells themselves as far as they are installed."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running_page import running_page

PODTRAIL = Path(sys.executable).parent
VIEWER = """
import asyncio, sys
from podtrail_extensions.viewer import FACTORY
from podtrail.component import Context
from podtrail.testing.attempts import MadeAttempt, no_room

async def main():
    config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
    async with FACTORY.create(config, Context(id="viewer")) as viewer:
        for name in ("web-0", "web-$(touch pwned)", "*"):
            batch = no_room(uid=name, name=name).batch()
            batch.verdicts[0].votes = {"failed": "sampled"}
            viewer.observe("traces", batch)
        viewer.observe("traces", MadeAttempt(uid="bound", name="bound").batch())
        print(viewer.page, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
BASH = """
source <(podtrail completion bash)
COMP_WORDS=({words}); COMP_CWORD=$(({last}))
_podtrail_completion podtrail
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# compsys is no part of what is asked here: what is handed to it is printed.
ZSH = """
compdef() {{ : }}
compadd() {{ print -rl -- "${{(@P)5}}" }}
_describe() {{ print -rl -- "${{(@P)3}}" }}
source <(podtrail completion zsh)
words=({words}); CURRENT=$(({last} + 1))
_podtrail_completion
"""
FISH = """
podtrail completion fish | source
complete --do-complete {line}
"""


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


def completed(shell: str, folder: Path, *typed: str) -> list[str]:
    """Return what a shell offers for the last of the words that are typed behind `podtrail`."""
    words = ("podtrail", *typed)
    scripts = {"bash": BASH, "zsh": ZSH, "fish": FISH}
    script = scripts[shell].format(
        words=shlex.join(words), last=len(words) - 1, line=shlex.quote(" ".join(map(str, words)))
    )
    done = run(shell, script, folder)
    assert shell == "fish" or done.stderr == ""  # fish speaks of the terminal it does not have
    return [line.partition("\t")[0].partition(":")[0] for line in done.stdout.splitlines() if line]


def run(shell: str, script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    return subprocess.run(
        [shell, *options, "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{PODTRAIL}:{os.environ['PATH']}", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_commands_options_values_and_components(shell: str, tmp_path: Path) -> None:
    assert set(completed(shell, tmp_path, "why", "p")) == {"pod", "pending", "plugin"}
    assert set(completed(shell, tmp_path, "re")) >= {"replay", "record", "recording", "reconstruct"}
    assert "--policy" in completed(shell, tmp_path, "tap", "--po")
    assert set(completed(shell, tmp_path, "completion", "")) == {"bash", "zsh", "fish"}
    assert completed(shell, tmp_path, "run", "--set", "processors.tail") == ["processors.tail_sampling."]


def test_names_of_a_running_page_and_none_that_a_shell_would_act_on(shell: str, tmp_path: Path, page: str) -> None:
    asked = ("--endpoint", page)
    assert completed(shell, tmp_path, "why", "pod", *asked, "we") == ["web-0"]
    assert completed(shell, tmp_path, "why", "pod", *asked, "default/w") == ["default/web-0"]
    assert completed(shell, tmp_path, "report", "pod", *asked, "we") == ["web-0"]
    assert completed(shell, tmp_path, "report", "pod", *asked, "-n", "d") == ["default"]
    assert completed(shell, tmp_path, "why", "plugin", *asked, "nodea") == ["NodeAffinity"]
    assert completed(shell, tmp_path, "why", "node", *asked, "node-0") == ["node-07"]
    assert completed(shell, tmp_path, "tap", *asked, "--policy", "f") == ["failed"]
    assert not (tmp_path / "pwned").exists()


def test_nobody_to_ask_is_silent(shell: str, tmp_path: Path) -> None:
    assert completed(shell, tmp_path, "why", "pod", "--endpoint", "http://127.0.0.1:9", "we") == []


def test_fish_shows_descriptions_to_their_end(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish: apt install fish")
    done = run("fish", FISH.format(line=shlex.quote("podtrail to")), tmp_path)
    (offered,) = done.stdout.splitlines()
    assert offered.startswith("top\tShow what goes on in a running podtrail: attempts, ")
