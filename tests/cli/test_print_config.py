"""`podtrail print-config`: ready to be read again, without secrets."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.cli import main
from podtrail.cli.print_config import to_yaml
from podtrail.config import Document
from tests.sizes import large

CONFIG = """\
receivers:
  otlp: {protocols: {grpc: }}
exporters:
  otlp/a:
    endpoint: backend.example:4317
    headers: {authorization: "${env:TOKEN}", x-number: "12"}
    tls: {insecure: true}
  file: {path: "a$$${env:NAME}.jsonl"}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp/a, file]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with secrets in it."""
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return path


def test_secrets_are_redacted(config: Path) -> None:
    done = CliRunner().invoke(main, ["print-config", f"--config={config}"], env={"TOKEN": "Bearer abc", "NAME": "b"})

    assert done.exit_code == 0
    assert "authorization: '[REDACTED]'\n      x-number: '[REDACTED]'\n" in done.output
    assert "abc" not in done.output
    assert "endpoint: backend.example:4317\n" in done.output


def test_secrets_of_telemetry_are_redacted(config: Path) -> None:
    otlp = "{protocol: grpc, endpoint: 'http://b:4317', headers: [{name: api-key, value: hush}]}"
    traces = f"traces: {{processors: [{{batch: {{exporter: {{otlp: {otlp}}}}}}}]}}"
    text = CONFIG.replace("service:\n", f"service:\n  telemetry: {{{traces}}}\n")
    config.write_text(text)
    done = CliRunner().invoke(main, ["print-config", f"--config={config}"], env={"TOKEN": "Bearer abc", "NAME": "b"})
    assert done.exit_code == 0, done.stderr
    assert "api-key" in done.stdout
    assert "hush" not in done.stdout


def test_secrets_are_shown_on_request_and_the_output_is_a_configuration_again(config: Path) -> None:
    environ = {"TOKEN": "Bearer abc", "NAME": "b"}
    done = CliRunner().invoke(main, ["print-config", f"--config={config}", "--mode=unredacted"], env=environ)

    assert "authorization: Bearer abc\n" in done.output
    assert Document.from_text(done.output).plain() == Document.load([str(config)], environ=environ).plain()


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False)
    | st.text("ab01 $.:{}~-o'\"#\n"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab01:~", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=large(40, 100))
@given(st.dictionaries(st.text("abc", min_size=1), VALUES))
def test_any_configuration_is_printed_so_that_it_reads_the_same(values: dict[str, Any]) -> None:
    document = Document.from_mapping({"x": {key: escaped(value) for key, value in values.items()}})

    assert Document.from_text(to_yaml(document)).plain() == document.plain() == {"x": values}


def escaped(value: Any) -> Any:
    """Return the value with every dollar sign doubled."""
    match value:
        case str():
            return value.replace("$", "$$")
        case list():
            return [escaped(item) for item in value]
        case dict():
            return {key: escaped(item) for key, item in value.items()}
        case _:
            return value
