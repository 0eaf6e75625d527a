"""Commands that ask a running page, where somebody else answers: nothing is taken for podtrail's that is not."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.cli.kubectl import plugin
from podtrail.cli.kubectl.client import KubectlError
from podtrail.cli.kubectl.finding import PodtrailPod
from podtrail.testing.attempts import no_room
from tests.extensions.held_page import held_page

HUGE = "1" + 400 * "0"
NO_PAGE = "answers, but not as a podtrail page does"


@contextmanager
def answering(said: bytes) -> Iterator[str]:
    """Answer whoever connects with these bytes; yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    caller.recv(65_536)
                    caller.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def http(body: str, length: int | None = None) -> bytes:
    raw = body.encode()
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(raw) if length is None else length}\r\n\r\n".encode() + raw


def run(said: bytes, *arguments: str) -> Result:
    with answering(said) as endpoint:
        return CliRunner().invoke(main, [*arguments, "--endpoint", endpoint])


@pytest.mark.parametrize("number", [HUGE, "NaN", "-Infinity", "1e999", "1e21"])
@pytest.mark.parametrize("command", [["top", "--once"], ["top", "-o", "json"], ["why", "pending"]])
def test_numbers_that_no_page_writes_are_told(command: list[str], number: str) -> None:
    told = f'{{"nowUnixNano": 5, "attemptsPerSecond": {number}, "pipeline": {{"uptimeSeconds": {number}}}}}'
    done = run(http(told), *command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert NO_PAGE in done.stderr


@pytest.mark.parametrize("command", ["why pod", "why trace", "why node", "report incident --from", "tap --pod"])
def test_bytes_that_are_no_text_are_asked_for(command: str) -> None:
    done = run(http("[]"), *command.split(), "\udcff")
    assert (done.exit_code, type(done.exception)) in [(1, SystemExit), (2, SystemExit)]


@pytest.mark.parametrize(
    "said", ["", "{}\n{}\n", '{"kind": "decision", "decision": {"spans": 1}}\n', "[]", "<html></html>"]
)
def test_a_tap_wants_a_page_that_listens(said: str) -> None:
    done = run(http(said), "tap")
    assert (done.exit_code, done.stdout) == (1, "")
    assert NO_PAGE in done.stderr


@pytest.mark.parametrize("number", [HUGE, "NaN"])
def test_a_tap_ends_at_a_number_that_no_page_writes(number: str) -> None:
    lines = f'{{"kind": "listening"}}\n{{"kind": "decision", "decision": {{"spans": {number}}}}}\n'
    done = run(http(lines), "tap", "-o", "json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert NO_PAGE in done.stderr


@pytest.mark.parametrize("said", ["", "<html>", "{}", "# \x1b]0;x\x07", "# \u202e", "HACK"])
def test_what_is_no_report_is_not_printed(said: str) -> None:
    done = run(http(said), "report", "incident")
    assert (done.exit_code, done.stdout) == (1, "")
    assert NO_PAGE in done.stderr


def test_half_a_report_is_none() -> None:
    done = run(http("# Incident\n", 5_000), "report", "incident")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "IncompleteRead" in done.stderr


@pytest.mark.parametrize("kind", ["markdown", "html"])
def test_a_report_of_a_page_is_printed_as_it_is(kind: str) -> None:
    with held_page(no_room()) as endpoint:
        done = CliRunner().invoke(main, ["report", "pod", "web-0", "-o", kind, "--endpoint", endpoint])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("# " if kind == "markdown" else "<!doctype html>")


def test_kubectl_podtrail_says_that_a_port_is_no_page() -> None:
    with answering(b"SSH-2.0-OpenSSH_9.9\r\n") as endpoint, pytest.raises(KubectlError, match="has no page on port 5"):
        plugin._knock(endpoint, PodtrailPod("default", "gw"), 5)


def test_a_bundle_is_not_asked_for_where_there_is_no_place_for_it(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.write_text("mine")
    nobody = ("--record", "10m", "--endpoint", "http://localhost:1")
    for to, words in ((path, "File exists"), (tmp_path / "none" / "x", "No such file"), (tmp_path, "exists")):
        done = CliRunner().invoke(main, ["support-bundle", "--to", str(to), *nobody])
        assert done.exit_code == 2
        assert words in done.stderr
    assert path.read_text() == "mine"


def test_half_a_bundle_does_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    log = "".join(json.dumps({"line": f"{number * 7919:x}"}) for number in range(20_000))
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "from podtrail.cli import main; main(sys.argv[1:])"
    )
    with answering(http(json.dumps({"files": {"log.jsonl": log}}))) as endpoint:
        done = subprocess.run(
            [sys.executable, "-c", program, "support-bundle", "--to", str(path), "--endpoint", endpoint],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, f"podtrail: {path}: File too large\n")
    assert not path.exists()
