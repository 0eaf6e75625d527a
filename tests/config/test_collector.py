"""What users bring from the Collector: its keys and components are known by name, and every answer shows a way out."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from podtrail.cli import main
from podtrail.component import registry
from podtrail.config import ConfigError, Document, Problem
from podtrail.config.collector_components import collector_component
from podtrail.config.model import Model
from podtrail.config.shape import Shape
from podtrail.config.telemetry import TelemetryConfig
from podtrail.pipeline.settings import read_settings

DATA = Path(__file__).parent.parent / "data"
PASTED = sorted((DATA / "pasted").glob("*.yaml"))
UNRECORDED = {"podtrail_receivers.otlp_json_file.config"}
"""Where keys are those of the Collector's sources: no build of it was at hand that has this one."""


def recorded() -> Mapping[type[BaseModel], list[list[str | int]]]:
    """Return the paths of the Collector's keys by our configuration of the component."""
    paths: dict[type[BaseModel], list[list[str | int]]] = {}
    model: type[BaseModel] = BaseModel
    for line in (DATA / "collector" / "keys.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            _, kind, name = line.split()
            factory = None if kind == "service" else registry.find(kind, name)  # type: ignore[arg-type]
            model = TelemetryConfig if factory is None else factory.Config
            paths[model] = []
        elif not line.startswith("#"):
            path: list[str | int] = []
            for part in line.split("::"):
                path += [part.rstrip("[]"), *[0] * part.count("[]")]
            paths[model].append(path)
    return paths


def below(model: type[Model]) -> Iterator[type[Model]]:
    """Yield the models that derive from one."""
    for derived in model.__subclasses__():
        yield derived
        yield from below(derived)


def lacking() -> Iterator[tuple[type[BaseModel], str]]:
    """Yield the Collector's keys that a model of ours does not have."""
    for model, paths in recorded().items():
        for path in paths:
            shapes = [Shape(model)]
            for key in path:
                below = [inner for shape in shapes for inner in shape.below(key)]
                if not below:
                    yield from ((shape.model, str(key)) for shape in shapes if shape.model is not None)
                    break
                shapes = below


def test_every_key_of_the_collector_is_here_or_known_to_be_not() -> None:
    unknown = {
        f"{model.__module__}.{model.__name__}.{key}"
        for model, key in lacking()
        if not (issubclass(model, Model) and key in model.of_the_collector)
    }

    assert not unknown


def test_what_is_said_to_be_the_collectors_is_and_is_not_here() -> None:
    real = set(lacking())
    models = {model for model, _ in real if issubclass(model, Model)}

    for model in models:
        assert issubclass(model, Model)
        if model.__module__ not in UNRECORDED:
            assert {(model, key) for key in model.of_the_collector} <= real
        assert all(model.of_the_collector.values())


def test_no_key_is_both_here_and_said_to_be_not() -> None:
    assert list(registry.all_factories())  # every component's models are known then
    models = list(below(Model))

    assert models
    for model in models:
        assert not model.of_the_collector.keys() & model.model_fields.keys()


@pytest.mark.parametrize("path", PASTED, ids=[path.stem for path in PASTED])
def test_what_is_pasted_is_answered_in_a_line_a_fault_with_a_way_out(path: Path) -> None:
    """The expected answers stand beside the configurations: a headline, and below it the hint."""
    problems = judged(path)

    assert report(problems) == path.with_suffix(".txt").read_text(encoding="utf-8")
    for problem in problems:
        assert "did you mean" not in problem.hint
        assert "unknown" not in problem.message
        assert problem.hint or "must be one of" in problem.message


def report(problems: Iterable[Problem]) -> str:
    return "".join(f"{problem.headline}\n" + f"  {problem.hint}\n" * bool(problem.hint) for problem in problems)


def judged(path: Path) -> tuple[Problem, ...]:
    try:
        read_settings(Document.from_text(path.read_text(encoding="utf-8"), path.name, {}))
    except ConfigError as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("receiver", ("k8s_cluster", "host_metrics", "hostmetrics", "prometheus", "filelog", "file_log", "nop")),
        (
            "processor",
            ("k8sattributes", "k8s_attributes", "resourcedetection", "transform", "cumulativetodelta", "span"),
        ),
        ("exporter", ("rabbitmq", "rabbit_mq", "zipkin", "awss3", "otelarrow", "clickhouse")),
        ("extension", ("db_storage", "asapclient", "oauth2client", "headers_setter", "k8s_observer", "pprof")),
    ],
)
def test_components_of_the_collector_are_told_in_either_spelling(kind: str, spellings: tuple[str, ...]) -> None:
    for name in spellings:
        found = collector_component(kind, name)
        assert found is not None, name
        assert found.message == f"the Collector has the {kind} {name!r}, podtrail does not"
        assert re.search(r"Collector|remove|leave it out|use |headers", found.hint)


@pytest.mark.parametrize(
    ("kind", "name", "message", "hint"),
    [
        ("exporter", "jaeger_storage_exporter", "Jaeger has the", "send OTLP to Jaeger: use otlp_grpc"),
        ("extension", "jaeger_storage", "Jaeger has the", "remove it"),
        ("exporter", "clickhousetraces", "SigNoz has the", "send OTLP to SigNoz"),
        ("processor", "signoztailsampling", "SigNoz has the", "use tail_sampling"),
        ("processor", "cascading_filter", "Sumo Logic's distribution has the", "use tail_sampling"),
    ],
)
def test_components_of_other_programs_are_told_with_the_program(kind: str, name: str, message: str, hint: str) -> None:
    found = collector_component(kind, name)
    assert found is not None
    assert found.message == f"{message} {kind} {name!r}, podtrail does not"
    assert found.hint.startswith(hint)


def test_what_podtrail_has_is_not_said_to_be_elsewhere() -> None:
    for factory in registry.all_factories():
        assert [collector_component(factory.kind, name) for name in (factory.type, *factory.aliases)] == [
            None for _ in range(1 + len(factory.aliases))
        ]


def test_a_misspelt_component_of_ours_is_still_guessed() -> None:
    assert collector_component("processor", "tailsamplin") is None


ACCEPTED = """\
connectors: null
connectors: {}
exporters::debug::verbosity: DETAILED
exporters::file::rotation::max_megabytes: 0
exporters::otlp_grpc::headers: [{name: x-token, value: hush}]
exporters::otlp_grpc::headers: {x-token: hush}
exporters::otlp_grpc::headers: []
exporters::otlp_grpc::tls::min_version: "1.2"
exporters::otlp_grpc::tls::min_version: ""
exporters::otlp_grpc::tls::cert_file: ""
exporters::otlp_http::headers: [{name: x-token, value: hush}]
exporters::otlp_http::tls::key_pem: ""
processors::filter::logs: {}
processors::filter::metric_conditions: []
processors::filter::spans: {}
processors::filter::traces::span: name == "a"
processors::tail_sampling::decision_wait: -5s
processors::tail_sampling::decision_wait_after_root_received: -5s
receivers::otlp::protocols::grpc::max_recv_msg_size_mib: 0
receivers::otlp::protocols::http::compression_algorithms: gzip,zstd
receivers::otlp::protocols::http::cors::allowed_headers: X-A,X-B
receivers::otlp::protocols::http::cors::allowed_origins: https://a.example
receivers::otlp::protocols::http::max_request_body_size: 0
receivers::otlp::protocols::http::max_request_body_size: -1
receivers::otlp::protocols::http::read_timeout: -1s
receivers::otlp::protocols::http::traces_url_path: v1/traces
service::telemetry::logs::level: ""
service::telemetry::metrics::level: NONE
service::telemetry::metrics::views: null
service::telemetry::resource: {deployment.environment.name: staging, service.instance.id: null}
service::telemetry::resource::attributes: [{name: a, value: b}, {name: c, value: 1, type: int}, {name: d, value: [x]}]
service::telemetry::resource::attributes: []
service::telemetry::resource: {schema_url: "https://opentelemetry.io/schemas/1.38.0", attributes: [{name: a, value: b}]}
service::telemetry::traces::level: Basic
service::telemetry::traces::processors: [OTLP headers: {x-token: hush}}}}}]
service::telemetry::traces::processors: [OTLP headers: [{name: x-token, value: hush}]}}}}]
service::telemetry::traces::propagators: b3
"""
"""Values that a Collector v0.161 accepts, as `otelcol validate` says."""
OTLP = "{batch: {exporter: {otlp: {protocol: grpc/protobuf, endpoint: b:4317,"
USED = """\
receivers: {otlp: {protocols: {grpc: {endpoint: localhost:4317}, http: {endpoint: localhost:4318}}}}
processors: {batch: {}, filter: {error_mode: silent}, tail_sampling: {policies: [{name: all, type: always_sample}]}}
exporters: {debug: {}, file: {path: x}, otlp_grpc: {endpoint: "http://b:4317"}, otlp_http: {endpoint: "http://b:4318"}}
service:
  pipelines:
    traces:
      receivers: [otlp]
      processors: [filter, tail_sampling, batch]
      exporters: [debug, file, otlp_grpc, otlp_http]
"""


@pytest.mark.parametrize("assignment", ACCEPTED.splitlines())
def test_values_that_the_collector_accepts_are_accepted(assignment: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(USED, encoding="utf-8")
    source = [str(tmp_path / "c.yaml"), f"yaml:{assignment.replace('OTLP', OTLP)}"]
    settings = read_settings(Document.load(source))
    if "hush" in assignment:
        shown = CliRunner().invoke(main, ["print-config", *(f"--config={one}" for one in source)])
        assert "x-token" in shown.stdout
        assert "hush" not in shown.stdout
    if "attributes" in assignment and "[]" not in assignment:
        assert settings.service.telemetry.resource["a"] == "b"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("{a: 1}", "resource::a: must be text"),
        ("{a: b, attributes: [{name: c, value: d}]}", "attributes: can't be used together with a"),
        ("{attributes: [{key: a, value: b}]}", "attributes: has item 1, which must have name and value"),
        ("{attributes_list: a=b}", "attributes_list: is the Collector's"),
        ("{attributes: {a: b}}", "attributes: must be text"),
        ("{detection/development: {detectors: [{host: {}}]}}", "detection/development: is the Collector's"),
    ],
)
def test_a_resource_that_can_not_be_read_is_named(resource: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(USED, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_settings(Document.load([str(tmp_path / "c.yaml"), f"yaml:service::telemetry::resource: {resource}"]))
    assert message in str(refused.value)
