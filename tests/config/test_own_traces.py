"""The keys of `service::telemetry::traces` are the Collector's."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from podtrail.config import Document
from podtrail.config.own_traces import OwnTracesConfig
from podtrail.pipeline.settings import read_settings

OTLP = {"protocol": "http/protobuf", "endpoint": "http://backend:4318"}
BATCH = {"batch": {"exporter": {"otlp": OTLP}}}
PASTED = {
    "level": "basic",
    "processors": [
        {
            "batch": {
                "schedule_delay": 1000,
                "max_queue_size": 4096,
                "max_export_batch_size": 256,
                "export_timeout": 5000,
                "exporter": {"otlp": {**OTLP, "headers": [{"name": "api-key", "value": "secret"}], "timeout": 3000}},
            }
        },
        {"simple": {"exporter": {"otlp": {"protocol": "grpc", "endpoint": "backend:4317", "insecure": True}}}},
    ],
    "propagators": ["tracecontext", "b3"],
    "sampler": {"parent_based": {"root": {"trace_id_ratio_based": {"ratio": 0.01}}}},
}


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "own-traces.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "config.yaml").write_text(example, encoding="utf-8")
    settings = read_settings(Document.load([str(tmp_path / "config.yaml")]))
    assert settings.service.telemetry.traces.share == 0.01


def test_it_is_off_unless_there_is_a_processor() -> None:
    assert OwnTracesConfig().share == 0
    assert OwnTracesConfig.model_validate({"sampler": {"always_on": {}}}).share == 0
    assert OwnTracesConfig.model_validate({"processors": [BATCH]}).share == 1
    assert OwnTracesConfig.model_validate({"processors": [BATCH], "level": "none"}).share == 0


def test_what_the_collector_takes_is_taken_and_what_does_nothing_is_said() -> None:
    config = OwnTracesConfig.model_validate(PASTED)
    assert config.share == 0.01
    ((path, words),) = config.warnings()
    assert (path, words) == (("propagators",), "has no effect: podtrail's own traces begin with itself")
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("sampler", "share"),
    [
        ({"always_on": None}, 1),
        ({"always_off": {}}, 0),
        ({"trace_id_ratio_based": {"ratio": 0.25}}, 0.25),
        ({"parent_based": {}}, 1),
        ({"parent_based": {"root": {"always_off": {}}}}, 0),
        ({"parent_based": None}, 1),
    ],
)
def test_samplers(sampler: dict[str, Any], share: float) -> None:
    assert OwnTracesConfig.model_validate({"processors": [BATCH], "sampler": sampler}).share == share


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"processors": [{}]}, "must be one of batch and simple"),
        ({"processors": [BATCH | {"simple": BATCH["batch"]}]}, "must be one of batch and simple"),
        (
            {"processors": [{"batch": {**BATCH["batch"], "max_queue_size": 5}}]},
            "must not be larger than max_queue_size",
        ),
        ({"processors": [{"simple": {"exporter": {"otlp": {**OTLP, "endpoint": "ftp://x"}}}}]}, "must be http://HOST"),
        ({"sampler": {"always_on": {}, "always_off": {}}}, "must be one kind"),
        ({"processors": [{"batch": {"exporter": {"console": {}}}}]}, "console"),
    ],
)
def test_what_can_not_be_is_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        OwnTracesConfig.model_validate(config)


@pytest.mark.parametrize("endpoint", ["http://", "", "http://backend:port", "backend:99999", "http://:4318"])
def test_an_endpoint_that_is_none_is_refused(endpoint: str) -> None:
    otlp = OTLP | {"endpoint": endpoint}
    with pytest.raises(ValidationError, match="must be http://HOST:PORT"):
        OwnTracesConfig.model_validate({"processors": [{"simple": {"exporter": {"otlp": otlp}}}]})


@pytest.mark.parametrize("endpoint", ["backend:4317", "http://[::1]:4318", "https://backend/otlp/v1/traces", "backend"])
def test_an_endpoint_may_be_written_in_several_ways(endpoint: str) -> None:
    otlp = OTLP | {"endpoint": endpoint}
    assert OwnTracesConfig.model_validate({"processors": [{"simple": {"exporter": {"otlp": otlp}}}]}).share == 1
