"""Commands that run processors of other distributions, in which something is wrong: a line that names them, code 1."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.component import Context, Factory, Taken, registry
from podtrail.component.passing import PassingProcessor
from podtrail.config.types import Model
from podtrail.otlp import Batch
from podtrail.recording import RecordingWriter
from podtrail.replay.replayer import replay
from podtrail.testing.attempts import START, MadeAttempt

Run = Callable[..., Result]


class Raising(PassingProcessor):
    def add(self, batch: Batch, now: int) -> Taken:
        raise ValueError("boom")


class Forgetful(PassingProcessor):
    def add(self, batch: Batch, now: int) -> Taken:
        return Taken()


class Inventive(PassingProcessor):
    def add(self, batch: Batch, now: int) -> Taken:
        return Taken((batch, batch))


class Stuck(PassingProcessor):
    """Holds the first batch for ever: it fails when its deadline has come."""

    def __init__(self) -> None:
        self._batch: Batch | None = None

    def add(self, batch: Batch, now: int) -> Taken:
        self._batch = batch
        return Taken()

    def deadline(self) -> int | None:
        return self._batch.arrived + 1 if self._batch else None

    def held(self) -> int:
        return self._batch.span_count if self._batch else 0

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        raise KeyError("jammed")


def _unmade(config: Model, context: Context) -> None:
    return None


def _unmakable(config: Model, context: Context) -> None:
    raise OSError("no licence")


FAULTY: dict[str, tuple[Callable[..., Any], str]] = {
    "raising": (lambda *_: Raising(), "raising: failed in add: ValueError: boom"),
    "forgetful": (lambda *_: Forgetful(), "processors::forgetful (pipeline traces) lost 5 spans without counting them"),
    "inventive": (
        lambda *_: Inventive(),
        "processors::inventive (pipeline traces) let out 5 spans that it was not given",
    ),
    "stuck": (lambda *_: Stuck(), "stuck: failed in expire: KeyError: 'jammed'"),
    "unmade": (_unmade, "processors::unmade: create returned None"),
    "unmakable": (_unmakable, "processors::unmakable: failed in start: OSError: no licence"),
}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        ("processor", type): Factory(kind="processor", type=type, Config=Model, create=create)
        for type, (create, _) in FAULTY.items()
    }
    monkeypatch.setattr(registry, "_third_party", lambda: registry._Others(made, []))  # type: ignore[arg-type]


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a function that writes a configuration with a processor of a type; and one attempt, of five spans."""
    groups = MadeAttempt().groups()
    assert sum(group.span_count for group in groups) == 5
    with RecordingWriter(tmp_path / "one.otlp") as writer:
        writer.write(groups, START)

    def write(type: str) -> list[str]:
        text = (
            f"processors: {{{type}: {{}}}}\nexporters: {{debug: {{}}}}\n"
            "receivers: {otlp: {protocols: {grpc: {}}}}\n"
            f"service: {{pipelines: {{traces: {{receivers: [otlp], processors: [{type}], exporters: [debug]}}}}}}\n"
        )
        (tmp_path / "c.yaml").write_text(text)
        (tmp_path / "c_test.yaml").write_text(
            "config: c.yaml\ncases: [{name: one, given: [pod web-0: success], expect: {pod web-0: kept}}]\n"
        )
        return [str(tmp_path / "one.otlp"), str(tmp_path / "c.yaml"), str(tmp_path / "c_test.yaml")]

    return write


@pytest.mark.parametrize("type", FAULTY)
def test_what_is_wrong_with_a_processor_is_a_line_and_exit_code_1(
    files: Callable[[str], list[str]], type: str, tmp_path: Path
) -> None:
    recording, config, cases = files(type)
    for arguments in (
        ["replay", "--config", config, recording, "--json", "--output", str(tmp_path / "kept.otlp")],
        ["backtest", "--candidate", config, recording],
        ["test", cases],
    ):
        done = CliRunner().invoke(main, arguments)
        says = FAULTY[type][1].removeprefix(f"{type}: ")
        assert says in done.output, (arguments, done.output)
        assert done.exit_code == 1
        assert "Traceback" not in done.output
        assert done.exception is None or isinstance(done.exception, SystemExit)


def test_why_answers_in_spite_of_a_processor_that_fails(files: Callable[[str], list[str]]) -> None:
    recording, config, _ = files("raising")
    done = CliRunner().invoke(main, ["why", "pending", "--from", recording, "--config", config])
    assert "podtrail: raising: failed in add: ValueError: boom; 5 spans dropped" in done.stderr
    assert isinstance(done.exception, SystemExit | None)


def test_a_test_in_python_gets_a_warning_or_the_exception(files: Callable[[str], list[str]]) -> None:
    recording, config, _ = files("forgetful")
    with pytest.warns(UserWarning, match="processors::forgetful .* lost 5 spans"):
        replay(config, recording)
    recording, config, _ = files("raising")
    with pytest.raises(ValueError, match="boom"):
        replay(config, recording)
