"""`podtrail why` as a person meets it: asking files, asking a running page, and nobody."""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import Batch
from podtrail.otlp.decisions import decision_line
from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.running_page import running_page

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
SCHEDULER = RECORDINGS / "scheduler.otlp.gz"
HOSTILE = "x\x1b]8;;http://x\x07\u202e[red]"
CONFIG = """
receivers: {otlp: {protocols: {grpc: }}}
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""


def why(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["why", *map(str, arguments)])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def record(path: Path, *attempts: MadeAttempt) -> Path:
    with RecordingWriter(path) as recording:
        for attempt in attempts:
            recording.write(attempt.groups(), attempt.start + attempt.duration)
    return path


def decide(path: Path, *batches: Batch) -> Path:
    lines = [json.dumps(decision_line(verdict)) for batch in batches for verdict in batch.verdicts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_recording_tells_a_pods_story_without_anybodys_decision() -> None:
    done = why("pod", "default/huge-0", "--from", SCHEDULER)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("default/huge-0 is Pending for at least 25 s: unschedulable. 54 attempts")
    assert lines[-1].endswith("no sampler's decision about it is in this source")
    assert "\x1b" not in done.output


def test_with_a_configuration_its_policies_decide_and_say_why(config: Path) -> None:
    done = why("pod", "huge-0", "-n", "default", "--from", SCHEDULER, "--config", config)
    assert done.exit_code == 0
    trace = done.stdout.splitlines()[-1]
    assert trace.endswith("kept by failed: scheduler.result=Unschedulable")
    told = why("trace", trace.split()[1].rstrip(","), "--from", SCHEDULER, "--config", config)
    assert "  failed  yes  scheduler.result=Unschedulable" in told.stdout


def test_what_a_run_has_written_tells_of_attempts_that_were_not_kept(tmp_path: Path) -> None:
    first, second = no_room(), MadeAttempt(number=2, start=START + 10**9)
    kept = record(tmp_path / "kept.jsonl", first)
    decisions = decide(
        tmp_path / "decisions.jsonl", first.batch(), second.batch("not_sampled", "", "no policy said yes")
    )
    done = why("pod", "default/web-0", "--from", kept, decisions)
    assert done.exit_code == 0
    assert "default/web-0 was scheduled in 1.01 s. 2 attempts." in done.stdout
    assert "attempt 2: not kept: no policy said yes" in done.stdout
    assert "was not kept" in why("trace", second.trace_id.hex(), "--from", kept, "--from", decisions).stdout


def test_a_name_is_enough_where_one_namespace_has_it_and_else_the_commands_to_type_are_listed(tmp_path: Path) -> None:
    alone = MadeAttempt(uid="three", name="b")
    kept = record(tmp_path / "kept it.jsonl", no_room(), no_room(uid="two", namespace="prod"), alone)
    assert why("pod", "b", "--from", kept).stdout.startswith("default/b was scheduled")
    done = why("pod", "web-0", "--from", kept, "--color", "never")
    assert (done.exit_code, done.stdout) == (1, "")
    said, *commands = done.stderr.splitlines()
    assert said.startswith("podtrail: 2 namespaces have a Pod web-0 (read ")
    for command, namespace in zip(commands, ("default", "prod"), strict=True):
        program, *typed = shlex.split(command)
        assert program == "podtrail"
        answered = CliRunner().invoke(main, typed)
        assert answered.exit_code == 0
        assert answered.stdout.startswith(f"{namespace}/web-0 is Pending")


def test_where_several_clusters_have_a_pod_of_a_name_each_has_a_command_to_type(tmp_path: Path) -> None:
    clusters = ("a cluster", "b")
    pods = [no_room(uid=cluster, cluster=cluster) for cluster in clusters]
    kept = record(tmp_path / "kept.jsonl", *pods, no_room(uid="no-cluster"))
    done = why("pod", "default/web-0", "--from", kept)
    assert (done.exit_code, done.stdout) == (1, "")
    said, *commands = done.stderr.splitlines()
    assert said.startswith(
        "podtrail: 2 clusters have a Pod default/web-0, and one that does not say its cluster (read "
    )
    answers = [CliRunner().invoke(main, shlex.split(command)[1:]).stdout for command in commands]
    assert [answer.partition(" is Pending")[0] for answer in answers] == [
        "default/web-0",
        "default/web-0 in cluster a cluster",
        "default/web-0 in cluster b",
    ]
    told = json.loads(why("pod", "web-0", "--cluster", "b", "--from", kept, "--json").stdout)
    assert told["pod"]["cluster"] == told["pod"]["uid"] == "b"
    unknown = why("pod", "default/web-0", "--cluster", "c", "--from", kept)
    assert unknown.exit_code == 1
    assert "nothing is known of Pod default/web-0 in cluster c; there is default/web-0, default/web-0 in cluster a" in (
        unknown.stderr
    )
    assert why("pod", "default/web-0", "--cluster", " ", "--from", kept).exit_code == 2


def test_what_was_kept_says_itself_why(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        CONFIG.replace("decision_wait: 1s", "decision_wait: 1s\n    record_reason: true"), encoding="utf-8"
    )
    came = record(tmp_path / "came.jsonl", no_room(), MadeAttempt(uid="two", name="api-0"))
    kept, decided = tmp_path / "kept.jsonl", tmp_path / "decisions.jsonl"
    command = ("replay", "--config", config, came, "--output", kept, "--decisions", decided)
    sampled = CliRunner().invoke(main, [*map(str, command)])
    assert sampled.exit_code == 0, sampled.output
    done = why("pod", "web-0", "--from", kept)
    assert done.stdout.splitlines()[-1].endswith("attempt 1: kept by failed: scheduler.result=Unschedulable")
    trace = no_room().trace_id.hex()
    lines = why("trace", trace, "--from", kept).stdout.splitlines()
    assert lines[0] == f"Trace {trace} was kept by failed: scheduler.result=Unschedulable."
    assert lines[1].endswith("When it was decided, and on how many spans, is not in this source.")
    assert "  failed  yes" in lines
    # A file of decisions knows more, and is asked first, whichever stands first.
    both = why("trace", trace, "--from", kept, decided, "-v").stdout
    assert "decided at " in both
    assert "not in this source" not in both
    assert "Decided before" not in both


def test_lines_that_are_no_decisions_are_named_and_the_rest_is_used(tmp_path: Path) -> None:
    decisions = decide(tmp_path / "decisions.jsonl", no_room().batch())
    decisions.write_text(decisions.read_text() + "{\n\n{}\n", encoding="utf-8")
    done = why("pod", "default/web-0", "--from", decisions)
    assert done.exit_code == 0
    assert f"skipped {decisions}:2:" in done.stderr
    assert f"skipped {decisions}:4: no traceId" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["pod", "default/nobody", "--from", SCHEDULER], 1, "nothing is known of Pod default/nobody (read"),
        (
            ["pod", "default/nobody", "--from", SCHEDULER],
            1,
            "what came from 2026-11-21T17:42:52Z to 2026-11-21T17:52:36Z",
        ),
        (["pod", "huge", "--from", SCHEDULER], 1, "nothing is known of Pod huge; there is default/huge-0"),
        (
            ["pod", "default/huge-0", "--attempt", "7", "--from", SCHEDULER],
            1,
            "of 54 there are 52, 53, 54",
        ),
        (["trace", "0" * 32, "--from", SCHEDULER], 1, "nothing is known of trace"),
        (["trace", "xyz", "--from", SCHEDULER], 2, "32 hexadecimal digits"),
        (["trace"], 2, "Missing argument"),
        (["pod", "a/b", "-n", "c"], 2, "given twice"),
        (["pod", "a/b", "--config", "x.yaml"], 2, "--config goes with --from"),
        (["pod", "a/b", "more.jsonl"], 2, "more files goes with --from"),
        (["pod", "a/b", "--from", SCHEDULER, "--set", "a=b"], 2, "--set goes with --config"),
        (["pod", "a/b", "--from", "no-such-file"], 2, "No such file"),
        (["pod", "a/b", "--from", RECORDINGS / "README.md"], 1, "nothing is known"),
        (["pod", "a/b", "--endpoint", "ftp://x"], 2, "no address of a page"),
        (["pod", "a/b", "--endpoint", "http://user:secret@x"], 2, "no address of a page"),
        (["pod", "a/b", "--endpoint", "http://x:99999"], 2, "no address of a page"),
    ],
)
def test_what_can_not_be_answered_says_why(arguments: list[object], code: int, words: str) -> None:
    done = why(*arguments)
    assert done.exit_code == code
    assert words in " ".join(done.stderr.replace("│", "").split())
    assert done.stdout == ""


def test_decisions_beside_a_configuration_that_makes_new_ones_are_a_mistake(tmp_path: Path, config: Path) -> None:
    decisions = decide(tmp_path / "decisions.jsonl", no_room().batch())
    done = why("pod", "default/web-0", "--from", decisions, "--config", config)
    assert done.exit_code == 2
    assert "leave it out, or --config" in done.stderr


def test_json_gives_the_story_that_the_lines_tell() -> None:
    done = why("pod", "default/frozen-0", "--from", SCHEDULER, "--json")
    told = json.loads(done.stdout)
    assert (told["pod"]["state"], told["pod"]["tries"]) == ("bind refused", 3)
    assert (
        "".join(piece["text"] for piece in told["lines"][0])
        == why("pod", "default/frozen-0", "--from", SCHEDULER).stdout.splitlines()[0]
    )
    gone = why("pod", "default/nobody", "--from", SCHEDULER, "--json")
    assert gone.exit_code == 1
    assert json.loads(gone.stdout) == {"error": "nothing is known of Pod default/nobody"}


def test_more_is_told_on_request_and_one_attempt_alone() -> None:
    more = why("pod", "default/critical-13", "--from", SCHEDULER, "-v").stdout
    assert "Attempt 1 compared with attempt 2:" in more
    one = why("pod", "default/critical-13", "--from", SCHEDULER, "--attempt", "1").stdout
    assert one.startswith("Attempt 1 of 2 of default/critical-13, 17:52:16 UTC: Unschedulable")


def test_colours_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = why("pod", "default/huge-0", "--from", SCHEDULER).stdout
    coloured = why("pod", "default/huge-0", "--from", SCHEDULER, "--color", "always").stdout
    assert "\x1b[33munschedulable\x1b[0m" in coloured
    assert "\x1b" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" in why("pod", "default/huge-0", "--from", SCHEDULER, "--color", "always").stdout


def test_hostile_names_have_no_power_over_the_terminal(tmp_path: Path) -> None:
    hostile = no_room(namespace="default", name=HOSTILE, message=HOSTILE, attributes={"scheduler.profile": HOSTILE})
    recording = record(tmp_path / "hostile.otlp", hostile)
    done = why("pod", f"default/{HOSTILE}", "--from", recording, "-v")
    assert done.exit_code == 0
    assert "\\x1b]8;;http://x\\x07\\u202e[red]" in done.stdout
    gone = why("pod", f"default/{HOSTILE}!", "--from", recording)
    for text in (done.output, gone.output):
        assert all(line.isprintable() for line in text.splitlines())


def test_nobody_listening_is_said_in_words_and_what_to_do() -> None:
    with _serving(b"") as address:
        pass
    done = why("pod", "default/web-0", "--endpoint", address)
    assert done.exit_code == 1
    assert f"no podtrail page at {address}" in done.stderr
    assert "or use --from" in done.stderr


@contextmanager
def _serving(body: bytes, status: int = 200) -> Iterator[str]:
    """A server that gives the same answer to everything."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"lines": 5}', b"[" * 100_000])
def test_another_server_is_told_from_a_podtrail_page(body: bytes) -> None:
    with _serving(body) as address:
        done = why("pod", "default/web-0", "--endpoint", address)
    assert done.exit_code == 1
    assert "not as a podtrail page does" in done.stderr


def test_a_server_that_says_anything_has_no_power_over_the_terminal() -> None:
    body = {"lines": [[{"text": HOSTILE, "style": "bold on red link=x"}, 5], 7, None], "details": "x"}
    with _serving(json.dumps(body).encode()) as address:
        done = why("pod", "default/web-0", "--endpoint", address, "-v", "--color", "always")
    assert done.exit_code == 0
    assert "\\x1b]8;;http://x\\x07\\u202e[red]" in done.stdout
    assert "\x1b]8" not in done.stdout


VIEWER = """
viewer.observe("traces", no_room().batch(reason="scheduler.result=Unschedulable"))
viewer.note(GatedPod("g", "default", "held-0", ("example.com/quota",), START))
"""


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a running page."""
    with running_page(VIEWER) as running:
        yield running.address


def test_a_running_page_answers_the_command_as_it_stands_in_the_summary(page: str) -> None:
    command = [sys.executable, "-m", "podtrail", "why", "pod", "default/web-0", "--endpoint", page]
    # A proxy for the rest of the world does not know this page.
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("default/web-0 is Pending for ")
    assert "  31  NodeAffinity      no match              node-00, node-01, 29 more" in done.stdout
    gated = why("pod", "default/held-0", "--endpoint", page)
    assert "Gates left: example.com/quota" in gated.stdout
    trace = why("trace", no_room().trace_id.hex(), "--endpoint", page)
    assert "was kept by failed: scheduler.result=Unschedulable" in trace.stdout
    gone = why("pod", "default/nobody", "--endpoint", page)
    assert gone.exit_code == 1
    assert f"nothing is known of Pod default/nobody (asked {page}, which holds what came in since 20" in gone.stderr
