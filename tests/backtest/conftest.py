"""Recordings of made attempts, and configurations that differ in a policy."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import MadeAttempt

SECOND = 1_000_000_000

Write = Callable[..., Path]


@pytest.fixture
def recorded(tmp_path: Path) -> Write:
    """Write attempts to a recording, each arriving at its end."""

    def write(attempts: Iterable[MadeAttempt], name: str = "recording.jsonl") -> Path:
        with RecordingWriter(tmp_path / name) as writer:
            for attempt in attempts:
                writer.write(attempt.groups(), attempt.start + attempt.duration)
        return tmp_path / name

    return write


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., str]:
    """Write a configuration whose sampler has these policies (lines of YAML); return its path."""

    def write(*policies: str, name: str = "policies", sampler: str = "decision_wait: 1s", after: str = "") -> str:
        processors = "[tail_sampling, link_stitching]" if after else "[tail_sampling]"
        lines = "".join(f"      - {policy}\n" for policy in policies)
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f"processors:\n  link_stitching:\n  tail_sampling:\n    {sampler}\n    policies:\n{lines}"
            "receivers: {otlp: {protocols: {grpc: }}}\n"
            "exporters: {debug: }\n"
            "service: {pipelines: {traces: "
            f"{{receivers: [otlp], processors: {processors}, exporters: [debug]}}}}}}\n"
        )
        return str(path)

    return write
