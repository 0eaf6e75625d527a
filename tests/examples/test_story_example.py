"""The recorded story of examples/story, as README and docs/story.md show it, and on the page."""

import json
import re
import shlex
import signal
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from tests.service.conftest import PODTRAIL, Process

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
STORY = ROOT / "examples" / "story" / "story.otlp.zst"


def sessions(page: str) -> list[tuple[str, str]]:
    """Return the commands about the example that a page shows, each with what it says that they print."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    steps = [step.partition("\n") for block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, shown) for command, _, shown in steps if "examples/story/" in command]


@pytest.mark.parametrize("page", ["README.md", "docs/story.md"])
def test_what_the_pages_show_of_the_story_is_what_is_printed(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = sessions(page)
    assert shown
    for command, said in shown:
        program, *arguments = shlex.split(command)
        assert program in (".venv/bin/podtrail", "podtrail")
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code, done.stdout.strip()) == (0, said.strip()), done.stderr


def test_the_page_shows_the_recorded_pods_and_a_life(tmp_path: Path, free_ports: list[int]) -> None:
    page, otlp = free_ports[:2]
    sets = {
        "extensions.viewer.endpoint": f"localhost:{page}",
        "extensions.viewer.otlp_endpoint": f"localhost:{otlp}",
        "exporters.otlp_grpc.endpoint": f"http://localhost:{otlp}",
    }
    arguments = ["run", "--config", str(ROOT / "examples" / "story" / "page.yaml")]
    arguments += [f"--set={key}={value}" for key, value in sets.items()]
    process = Process([str(PODTRAIL)], arguments, tmp_path, {"STORY": str(STORY)})
    try:
        process.line("serving")
        pods = json.loads(get(page, "/api/v1/pods?state=all"))
        shown = get(page, f"/pods/{next(pod['key'] for pod in pods['pods'] if pod['name'] == 'crash')}")
        process.tell(signal.SIGTERM)
        assert process.end() == 0
    finally:
        process.close()
    assert pods["tallies"] == {"crash loop": 1, "image pull failing": 1, "running": 5, "terminated": 3}
    assert "Its way" in shown
    assert "CrashLoopBackOff of main, 3 times" in shown


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=PATIENCE) as answer:
        body: bytes = answer.read()
    return body.decode()
