"""The command line as a user calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "examples" / "recording.yaml"
POLICY_TESTS = EXAMPLE.parent / "policies" / "failed-and-slow_test.yaml"

CONFIG = """\
receivers:
  otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}
processors:
  batch: {timeout: "${env:WAIT:-1s}"}
exporters:
  debug:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [debug]}
"""


def podtrail(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="podtrail", env=environ)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration that is right."""
    path = tmp_path / "pipeline.yaml"
    path.write_text(CONFIG)
    return path


def test_validate_says_what_it_checked(config: Path) -> None:
    done = podtrail("validate", f"--config={config}")

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"OK {config}: 1 receiver, 1 processor, 1 exporter, 0 extensions, 1 pipeline (traces)\n"


def test_validate_reports_everything_on_stderr_and_exits_with_2(config: Path) -> None:
    done = podtrail("validate", f"--config={config}", "--set=exporters.debug.verbosity=loud", WAIT="5s")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "--set=exporters.debug.verbosity=loud: exporters::debug::verbosity: "
        "must be one of basic, normal, detailed, not 'loud'\n"
    )


def test_an_unset_variable_is_named_with_the_error_that_it_leads_to(config: Path) -> None:
    config.write_text(CONFIG.replace("batch: {timeout", "batch: {send_batch_size: '${env:NOT_SET}x', timeout"))
    done = podtrail("validate", f"--config={config}")

    assert done.exit_code == 2
    warning, error = (done.stderr.index(text) for text in ("warning: ", "batch::send_batch_size: must be"))
    assert "the environment variable NOT_SET is not set" in done.stderr[warning:error]


def test_warnings_are_shown_and_counted(config: Path) -> None:
    done = podtrail("validate", f"--config={config}", "--set=exporters::debug/2={}")

    assert done.exit_code == 0
    assert done.stderr.startswith(
        "warning: --set=exporters::debug/2={}: exporters::debug/2: is configured but not used"
    )
    assert done.stdout.endswith("1 pipeline (traces); 1 warning\n")


def test_several_configurations_are_merged(config: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("processors: {batch: {send_batch_size: 7}}\n")
    done = podtrail("print-config", "--mode=unredacted", f"--config={config}", f"--config={more}", WAIT="3s")

    assert "  batch:\n    timeout: 3s\n    send_batch_size: 7\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Usage: podtrail"),
        (("valdate",), "no such command 'valdate'; did you mean validate? commands: run, "),
        (("validate",), "Missing option '--config'"),
        (("validate", "--confg=x"), "No such option '--confg'"),
        (("validate", "--config=/nowhere.yaml"), "/nowhere.yaml: there is no such file"),
        (("validate", "--config=x", "--feature-gates=nope"), "unknown feature gate 'nope'; known: processor.tail"),
        (("print-config", "--config=x", "--mode=all"), "'all' is not one of 'redacted', 'unredacted'"),
    ],
)
def test_a_mistake_exits_with_2_and_without_a_traceback(arguments: tuple[str, ...], message: str) -> None:
    done = podtrail(*arguments)

    assert done.exit_code == 2
    assert message in done.stderr
    assert isinstance(done.exception, SystemExit)


def test_feature_gates_are_switched_on_and_off(config: Path) -> None:
    gate = "processor.tailsamplingprocessor.recordpolicy"

    assert podtrail("validate", f"--config={config}", f"--feature-gates=+{gate},-{gate}").exit_code == 0


def test_a_report_is_plain_when_it_is_not_on_a_terminal(config: Path) -> None:
    config.write_text("a: '\x1b[2J'")

    done = podtrail("validate", f"--config={config}")

    assert "\x1b" not in done.stderr
    assert done.exit_code == 2


def test_components_are_listed_with_their_older_names() -> None:
    *table, empty, native = podtrail("components").stdout.splitlines()
    listed = json.loads(podtrail("components", "--json").stdout)

    assert table[0].split() == ["KIND", "TYPE", "OLDER", "NAMES", "WHAT", "IT", "IS"]
    assert any(line.split()[:3] == ["exporter", "otlp_grpc", "otlp"] for line in table)
    assert {"kind": "exporter", "type": "otlp_http", "older_names": ["otlphttp"]}.items() <= next(
        one for one in listed if one["type"] == "otlp_http"
    ).items()
    assert len(listed) == len(table) - 1
    assert (empty, native.partition(" ")[0]) == ("", "native:")


def test_components_say_which_code_reads_spans() -> None:
    command = [sys.executable, "-m", "podtrail", "components"]
    environment = os.environ | {"PODTRAIL_NATIVE": "off"}
    off = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600).stdout.splitlines()
    assert off[-1] == "native: Python (PODTRAIL_NATIVE=off)"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from podtrail.cli import main; main(['--help'], standalone_mode=False);"
        "heavy = {'pydantic', 'yaml', 'grpc', 'aiohttp', 'rich', 'google.protobuf'} & set(sys.modules);"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == "[]\n"
    assert "print-config" in done.stdout


def test_every_command_explains_itself() -> None:
    for command in ("run", "validate", "components", "print-config", "replay"):
        done = podtrail(command, "--help")
        assert done.exit_code == 0, done.stderr
        assert f"Usage: podtrail {command}" in done.stdout


@pytest.mark.parametrize("command", ["--help", "print-config"])
def test_an_output_that_is_full_is_told_in_a_line(config: Path, command: str) -> None:
    arguments = [command] if command == "--help" else [command, f"--config={config}"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "podtrail", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600
        )

    assert (done.returncode, done.stderr) == (1, "podtrail: can't write the output: No space left on device\n")


def test_nothing_is_said_when_the_reader_has_seen_enough() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "podtrail", "components"]
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=600)

    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_standard_error_is_not_worth_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "podtrail", "validate", f"--config={tmp_path}"]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stdout=full, stderr=full, timeout=600).returncode == 1


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_runs_with_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    (tmp_path / "config.yaml").write_text(
        "receivers: {scheduler: {speed: 0, workload: {length: 2s, arrival_rate: 5}}}\n"
        "exporters: {file: {path: out.jsonl}}\n"
        "service: {telemetry: {metrics: {level: none}}, "
        "pipelines: {traces: {receivers: [scheduler], exporters: [file]}}}\n"
    )
    command = f"{sys.executable} -m podtrail run --exit-when-done --config config.yaml {closed}"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=600).returncode == 0
    assert (tmp_path / "out.jsonl").read_text().startswith('{"resourceSpans"')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("recording", "mrge"), "no such command 'mrge'; did you mean merge? commands: merge, cut, anonymize, stat"),
        (("why", "pening"), "no command 'pening'; did you mean pending? a Pod: "),
        (("record", "--from", "localhost:99999", "--to", "x.otlp"), "'localhost:99999' has no port from 0 to 65535"),
    ],
)
def test_a_mistyped_word_is_named_with_what_would_be_right(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, isinstance(done.exception, SystemExit)) == (2, True)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", r"caf\u00e9 \ud83d\ude00"), ("latin-1", "café \\ud83d\\ude00")]
)
def test_characters_that_the_terminal_lacks_are_escaped(encoding: str, shown: str, tmp_path: Path) -> None:
    policies = "yaml:processors::tail_sampling::policies: [{name: café 😀, type: always_sample}]"
    recording = DATA / "recordings" / "apiserver.otlp.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "podtrail", "replay", f"--config={EXAMPLE}", f"--config={policies}", recording],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    "arguments",
    [
        "replay --config EXAMPLE gone",
        "backtest --candidate EXAMPLE gone",
        "suggest --budget 1MB/day gone",
        "recording stat gone",
        "recording merge gone --to to.otlp",
        "record --from gone --to to.otlp",
        "why pending --from gone",
        "why pending --log gone",
        "report incident gone",
        "reconstruct --log gone",
        "reconstruct --log RECORDING --output gone/to.otlp",
        "test gone",
        "test TESTS --junit gone/to.xml",
        "generate --workload gone --to to.otlp",
        "generate --like quiet --length 5s --to gone/to.otlp",
        "validate --config gone",
        "recording merge RECORDING --to LONG",
        "recording cut RECORDING --pod p --to LONG",
        "recording anonymize RECORDING --to LONG",
        "replay --config EXAMPLE RECORDING --output LONG",
        "replay --config EXAMPLE RECORDING --decisions LONG",
        "backtest --candidate EXAMPLE RECORDING --html LONG",
        "generate --length 1s --to LONG",
        "reconstruct --log RECORDING --output LONG",
        "record --from LONG --to to.otlp",
        "record --from RECORDING --to LONG",
        "test TESTS --junit LONG",
        "test LONG",
    ],
)
def test_a_missing_file_or_folder_is_named_with_exit_code_2(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long = "gone" * 80 + ".otlp"  # Path.exists raises for it, as for a name in a folder that may not be entered
    recording = DATA / "recordings" / "apiserver.otlp.jsonl"
    named = {"EXAMPLE": EXAMPLE, "RECORDING": recording, "TESTS": POLICY_TESTS, "LONG": long}
    done = CliRunner().invoke(main, [str(named.get(word, word)) for word in arguments.split()])
    assert "gone" in done.output
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
