"""Without the extra `podtrail[kafka]` the components that need it say so at the start; all others run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = "import sys; sys.modules['confluent_kafka'] = None; from podtrail.__main__ import main; sys.exit(main())"
OTLP = {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}


@pytest.mark.parametrize(
    ("receivers", "exporters", "named"),
    [
        ({"kafka": None}, {"debug": None}, "receivers::kafka"),
        ({"otlp": OTLP}, {"kafka": None}, "exporters::kafka"),
    ],
)
def test_a_component_that_needs_it_says_what_to_install(
    tmp_path: Path, receivers: dict[str, object], exporters: dict[str, object], named: str
) -> None:
    pipelines = {"traces": {"receivers": list(receivers), "exporters": list(exporters)}}
    telemetry = {"metrics": {"level": "none"}}
    service = {"telemetry": telemetry, "pipelines": pipelines}
    path = tmp_path / "pipeline.yaml"
    path.write_text(json.dumps({"receivers": receivers, "exporters": exporters, "service": service}), encoding="utf-8")

    command = [sys.executable, "-c", BLOCKED, "run", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    assert done.returncode != 0
    assert "pip install '.[kafka]' in its checkout" in done.stderr
    assert named.split("::")[1] in done.stderr
    assert "Traceback" not in done.stderr
