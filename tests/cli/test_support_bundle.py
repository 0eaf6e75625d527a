import json
import re
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import native
from tests.service.conftest import PODTRAIL, Process

PLANTED = [f"planted-{n}-secret" for n in range(7)]
CONFIG = f"""\
receivers:
  scheduler:
    workload: {{seed: 1, length: 20s, arrival_rate: 1, nodes: [{{name: n, count: 2}}], pods: [{{name: web}}]}}
    speed: 1000
processors:
  attributes:
    actions:
      - {{key: x-api-token, value: {PLANTED[0]}, action: insert}}
      - {{key: url, value: "https://user:{PLANTED[3]}@other.example/?sig={PLANTED[4]}", action: insert}}
  tail_sampling:
    decision_wait: 1s
    policies: [{{name: all, type: always_sample}}]
exporters:
  otlp_grpc:
    endpoint: OWN
    headers: {{x-harmless: {PLANTED[1]}, authorization: Bearer {PLANTED[2]}}}
  otlp_http:
    endpoint: http://localhost:1
  otlp_http/env:
    endpoint: http://${{env:SOME_PLACE}}:1
extensions:
  viewer: {{endpoint: "localhost:0", otlp_endpoint: "localhost:0"}}
  basicauth:
    client_auth: {{username: me, password: {PLANTED[5]}}}
service:
  extensions: [viewer]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces:
      receivers: [scheduler]
      processors: [attributes, tail_sampling]
      exporters: [otlp_http, otlp_http/env]
"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The address of a running podtrail whose configuration is full of secrets."""
    (tmp_path / "config.yaml").write_text(CONFIG.replace("    endpoint: OWN", "    endpoint: http://localhost:1"))
    arguments = ["run", "--config", str(tmp_path / "config.yaml")]
    process = Process([str(PODTRAIL)], arguments, tmp_path, {"SOME_PLACE": PLANTED[6]})
    try:
        yield process.line(r"page on (http://\S+?/)")[1]
    finally:
        process.close()


def bundle(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["support-bundle", *arguments])


def members(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {
            one.name.removeprefix("podtrail-support/"): archive.extractfile(one).read().decode()  # type: ignore[union-attr]
            for one in archive
        }


def test_a_bundle_has_all_of_it_and_no_secret(page: str, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    done = bundle("--endpoint", page, "--to", str(path), "--record", "1s")
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told = members(path)
    assert set(told) == {
        *("CONTENTS.txt", "config.yaml", "versions.json", "health.json", "ledger.json", "metrics.txt"),
        *("policies.json", "log.jsonl", "kept.jsonl"),
    }
    for name, text in told.items():
        assert [secret for secret in PLANTED if secret in text] == [], name
    config = yaml.safe_load(told["config.yaml"])
    assert config["processors"]["tail_sampling"]["decision_wait"] == "1s"
    assert config["exporters"]["otlp_http/env"]["endpoint"] == "http://[from the environment: SOME_PLACE]:1"
    assert config["extensions"]["basicauth"]["client_auth"] == {"username": "me", "password": "[REDACTED]"}
    assert config["service"]["pipelines"]["traces"]["processors"] == ["attributes", "tail_sampling"]
    assert [one["missing"] for one in json.loads(told["ledger.json"])] == [0, 0]
    assert json.loads(told["health.json"])["balanced"] is True
    assert json.loads(told["versions.json"])["packages"]["podtrail"]
    assert json.loads(told["versions.json"])["native"] == native.RUNS
    assert "podtrail_ledger_spans" in told["metrics.txt"]
    assert "page on" in told["log.jsonl"]
    for name in set(told) - {"CONTENTS.txt"}:
        assert re.search(rf"^  {re.escape(name)} +[\d,]+ bytes  \w", told["CONTENTS.txt"], re.MULTILINE)
    assert "Left out:" in told["CONTENTS.txt"]
    assert told["CONTENTS.txt"] in done.stdout

    again = bundle("--endpoint", page, "--to", str(path))
    assert again.exit_code == 2
    assert "File exists" in again.stderr


def test_nobody_there_is_told_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    done = bundle("--endpoint", "http://localhost:1", "--to", str(path))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "no podtrail page at http://localhost:1" in done.stderr
    assert not path.exists()


@pytest.mark.parametrize("length", ["0s", "1h", "soon"])
def test_a_recording_has_a_length(length: str) -> None:
    assert bundle("--record", length).exit_code == 2
