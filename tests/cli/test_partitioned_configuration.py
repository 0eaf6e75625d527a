"""Commands that take a gateway's configuration, with recordings in the place of Kafka."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.recording import read_recording

SCHEDULER = Path(__file__).parents[1] / "data" / "recordings" / "scheduler.otlp.gz"
KAFKA = "kafka: {brokers: ['127.0.0.1:1'], group_id: sampling}"
OTLP = "otlp: {protocols: {grpc: }}"
CONFIG = """\
receivers: {%s}
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [%s]}}
exporters: {debug: , file: {path: kept.jsonl}}
service:
  pipelines:
    traces: {receivers: [%s], processors: [tail_sampling], exporters: [debug]}
    traces/all: {receivers: [%s], exporters: [file]}
"""
FAILED = "Unschedulable, Error"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def written(path: Path, receiver: str, results: str = FAILED) -> Path:
    id = receiver.partition(":")[0]
    path.write_text(CONFIG % (receiver, results, id, id), encoding="utf-8")
    return path


@pytest.fixture
def configs(tmp_path: Path) -> list[Path]:
    """A gateway's configuration that reads Kafka, and the same one behind OTLP."""
    return [written(tmp_path / "kafka.yaml", KAFKA), written(tmp_path / "otlp.yaml", OTLP)]


def same(outputs: Sequence[str]) -> str:
    """What both have said, which must be the same."""
    kafka, otlp = outputs
    assert kafka == otlp
    return kafka


def test_it_is_right_and_its_receiver_is_a_component(configs: list[Path]) -> None:
    done = run("validate", "--config", configs[0])
    assert done.exit_code == 0
    assert "1 receiver, 1 processor, 2 exporters, 0 extensions, 2 pipelines (traces, traces/all)" in done.output
    assert run("print-config", "--config", configs[0]).exit_code == 0
    told = json.loads(run("components", "--json").stdout)
    assert "kafka" in [each["type"] for each in told if each["kind"] == "receiver"]


def test_a_replay_decides_about_a_recording_as_behind_any_receiver(configs: list[Path], tmp_path: Path) -> None:
    decisions = []
    for config in configs:
        output, path = config.with_suffix(".otlp"), config.with_suffix(".jsonl")
        done = run("replay", "--config", config, SCHEDULER, "--decisions", path, "--output", output)
        assert done.exit_code == 0, done.output
        decisions.append(path.read_text(encoding="utf-8") + str(len(list(read_recording(output)))))
    lines = same(decisions).splitlines()[:-1]
    assert {json.loads(line)["decision"] for line in lines} == {"sampled", "not_sampled"}


def test_tests_of_policies_run_on_it(configs: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "policies_test.yaml"
    for config in configs:
        file.write_text(
            f"config: {config.name}\n"
            "pipeline: traces\n"
            "cases:\n"
            "  - name: a failed attempt is kept\n"
            "    given: ['pod web-0: 1 failed attempt by NodeResourcesFit, then success in 40ms']\n"
            "    expect:\n"
            "      pod web-0 attempt 1: kept by failed because scheduler.result=Unschedulable\n"
            "      pod web-0 attempt 2: dropped because no policy said yes\n"
        )
        done = run("test", "--json", file)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["passed"] == 1
