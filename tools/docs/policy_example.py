"""The example of a policy: a configuration as it is shown, and what it does with a few traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from podtrail.config import Document
from podtrail.config.types import Model
from podtrail.otlp import Batch, Verdict, read_request, write_request
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer
from tools.docs.example_traces import TraceExample, TraceMaker

_AROUND: Mapping[str, Any] = {
    "receivers": {"otlp": {"protocols": {"grpc": {}}}},
    "exporters": {"debug": {}},
    "service": {"pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug"]}}},
}


class Warned(Model):
    """Settings that are legal but hardly meant."""

    settings: dict[str, Any]
    """Under the policy's type."""


class ExampleTraces(Model):
    """The second part of an example's file."""

    origin: Literal["collector", "podtrail"]
    """Who has the policy."""
    about: str = ""
    """What the policy itself does not say: when to use it, what to look out for."""
    traces: tuple[TraceExample, ...] = Field(min_length=1)
    warned: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class PolicyExample:
    """A file of examples."""

    shown: str
    """The configuration, as it stands in the file: `processors` with `tail_sampling`."""
    told: ExampleTraces

    @property
    def processors(self) -> dict[str, Any]:
        """The processors that it configures, by their ids."""
        found: dict[str, Any] = yaml.safe_load(self.shown)["processors"]
        return found


@dataclass(frozen=True)
class ExampleResult:
    """What became of the traces of one row."""

    trace: TraceExample
    verdicts: Sequence[Verdict]

    @property
    def kept(self) -> int:
        """How many were kept."""
        return sum(verdict.decision == "sampled" for verdict in self.verdicts)

    @property
    def as_expected(self) -> bool:
        """Whether it is what the example says."""
        match self.trace.kept:
            case bool(all_or_none):
                return self.kept == self.trace.count * all_or_none
            case int(wanted):
                return self.kept == wanted
            case least, most:
                return least <= self.kept <= most


def read_example(path: Path) -> PolicyExample:
    """Return what a file says.

    Raises:
        ValueError: it has not its two parts, or one is wrong.
    """
    shown, mark, told = path.read_text(encoding="utf-8").partition("\n---\n")
    if not mark:
        raise ValueError(f"{path} has no line --- between the configuration and the traces")
    try:
        return PolicyExample(shown.strip() + "\n", ExampleTraces.model_validate(yaml.safe_load(told)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def run_example(example: PolicyExample) -> list[ExampleResult]:
    """Return what becomes of each row of traces.

    Raises:
        ConfigError: the configuration is wrong.
    """
    pipeline = {**_AROUND["service"]["pipelines"]["traces"], "processors": list(example.processors)}
    whole = {**_AROUND, "processors": example.processors, "service": {"pipelines": {"traces": pipeline}}}
    verdicts: dict[bytes, Verdict] = {}

    def sink(_: str, batch: Batch) -> None:
        for verdict in batch.verdicts:
            verdicts.setdefault(verdict.trace_id, verdict)

    replayer = Replayer(read_settings(Document.from_mapping(whole), frozenset()), sink)
    maker = TraceMaker()
    made = [(row, arrival, groups) for row in example.told.traces for arrival, groups in maker.make(row)]
    for _, arrival, groups in sorted(made, key=lambda one: one[1]):
        replayer.add(arrival, read_request(write_request(groups)))
    replayer.finish()
    return [
        ExampleResult(row, [verdicts[groups[0].trace_id] for of, _, groups in made if of is row])
        for row in example.told.traces
    ]
