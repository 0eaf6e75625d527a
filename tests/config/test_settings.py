"""A configuration as a whole: components, pipelines, service."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import PipelineSettings, Settings, read_settings
from podtrail.pipeline.telemetry_settings import LogsSettings, MetricsSettings, TelemetrySettings

WHOLE = """\
receivers:
  otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}
processors:
  batch:
  batch/large: {timeout: 1s}
exporters:
  debug:
service:
  pipelines:
    traces:
      receivers: [otlp]
      processors: [batch/large, batch]
      exporters: [debug]
"""


def read(text: str) -> Settings:
    """Return the settings of a configuration text."""
    return read_settings(Document.from_text(text, "c.yaml", {}))


def refusal(text: str) -> list[str]:
    """Return the headlines of what is wrong with a configuration text."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    return [problem.headline for problem in caught.value.problems]


def hints(text: str) -> list[str]:
    """Return what the reports on a configuration text say would be right."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    return [problem.hint for problem in caught.value.problems]


def test_a_configuration_becomes_settings() -> None:
    settings = read(WHOLE)

    assert settings.pipelines == (PipelineSettings("traces", ("otlp",), ("batch/large", "batch"), ("debug",)),)
    assert {id: one.factory.type for id, one in settings.processors.items()} == {
        "batch": "batch",
        "batch/large": "batch",
    }
    assert settings.processors["batch"].config == settings.processors["batch"].factory.Config()
    assert settings.processors["batch/large"].config.timeout == 1_000_000_000
    assert settings.service.telemetry == TelemetrySettings()
    assert settings.warnings == ()


def test_older_names_are_taken_and_ids_stay_as_written() -> None:
    text = WHOLE.replace("  debug:", "  otlp/old: {endpoint: 'localhost:1'}").replace("[debug]", "[otlp/old]")
    settings = read(text)

    assert settings.exporters["otlp/old"].factory.type == "otlp_grpc"
    assert settings.pipelines[0].exporters == ("otlp/old",)


def test_several_pipelines_share_components() -> None:
    settings = read(WHOLE + "    traces/2: {receivers: [otlp], exporters: [debug]}\n")

    assert settings.pipelines[1] == PipelineSettings("traces/2", ("otlp",), (), ("debug",))


@pytest.mark.parametrize(
    ("old", "new", "headline"),
    [
        ("  batch:\n", "", 'c.yaml:11:33: service::pipelines::traces: references processor "batch" which is not'),
        ("[otlp]", "[otlpp]", 'c.yaml:11:19: service::pipelines::traces: references receiver "otlpp" which is not'),
        ("[debug]", "[debug, debug]", 'service::pipelines::traces: references exporter "debug" more than once'),
        ("[otlp]", "[]", "c.yaml:10:5: service::pipelines::traces: must have at least one receiver"),
        ("[debug]", "", "c.yaml:10:5: service::pipelines::traces: must have at least one exporter"),
        ("[debug]", "debug", "c.yaml:13:18: service::pipelines::traces::exporters: must be a list of ids"),
        ("[debug]", "[1]", "c.yaml:13:19: service::pipelines::traces::exporters::0: must be an id"),
        ("    traces:", "    traces/:", "c.yaml:10:5: service::pipelines::traces/: 'traces/' is no id"),
        ("    traces:", "    metrics:", "service::pipelines::metrics: podtrail handles traces only, not metrics"),
        ("    traces:", "    logs/x:", "service::pipelines::logs/x: podtrail handles traces only, not logs"),
        ("    traces:", "    spans:", "service::pipelines::spans: unknown signal 'spans'"),
        ("      exporters", "      exporter", "service::pipelines::traces::exporter: unknown key 'exporter'"),
        ("  batch:", "  bach:", "c.yaml:4:3: processors::bach: unknown processor type 'bach'"),
        ("  batch:", "  /x:", "c.yaml:4:3: processors::/x: '/x' is no id: the type is missing"),
        ("  batch:", "  batch/:", "processors::batch/: 'batch/' is no id: the part after / is empty"),
        ("  batch:", "  2batch:", "processors::2batch: '2batch' is no id: a type is letters, digits and _"),
        ("  batch:", "  batch: 5", "c.yaml:4:10: processors::batch: must be a map of settings"),
        ("1s", "1x", "c.yaml:5:26: processors::batch/large::timeout: '1x' has the unknown unit 'x'"),
        ("receivers:\n", "reciever: {}\nreceivers:\n", "c.yaml:1:1: reciever: unknown key 'reciever'"),
        (
            "receivers:\n",
            "connectors: {count: {}}\nreceivers:\n",
            "c.yaml:1:1: connectors: the Collector has connectors",
        ),
        ("service:\n", "service:\n  telemtry: {}\n", "c.yaml:9:3: service::telemtry: unknown key 'telemtry'"),
        (
            "service:\n",
            "service:\n  extensions: [zpages]\n",
            'service::extensions: references extension "zpages" which',
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(old: str, new: str, headline: str) -> None:
    assert old in WHOLE

    assert any(headline in found for found in refusal(WHOLE.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("receivers:\n", "pipelines: {}\nreceivers:\n", "it stands under service"),
        ("service:\n", "service:\n  logs: {}\n", "it stands under telemetry"),
    ],
)
def test_a_key_of_a_section_below_is_said_to_stand_there(old: str, new: str, hint: str) -> None:
    assert hints(WHOLE.replace(old, new, 1)) == [hint]


def test_a_configuration_without_service_or_pipelines_is_refused() -> None:
    assert refusal("receivers: {otlp: {protocols: {grpc: }}}") == ["c.yaml:1:1: service: is required"]
    assert refusal("service: {}") == ["c.yaml:1:1: service::pipelines: must have at least one pipeline"]
    assert refusal("service: {pipelines: 7}") == [
        "c.yaml:1:11: service::pipelines: must have at least one pipeline",
        "c.yaml:1:22: service::pipelines: must be a map",
    ]


def test_a_broken_component_does_not_break_the_references_to_it() -> None:
    assert len(refusal(WHOLE.replace("1s", "1x"))) == 1


def test_a_misspelt_type_is_guessed_and_a_misplaced_one_is_sent_home() -> None:
    guessed, *_ = hints(WHOLE.replace("  batch:", "  tail_samplin:"))
    home, *_ = hints(WHOLE.replace("  batch:", "  debug:"))

    assert guessed.startswith("did you mean tail_sampling? processors there are: attributes, batch, ")
    assert home == "debug belongs under exporters"


def test_what_nothing_uses_is_warned_of() -> None:
    settings = read(WHOLE.replace("[batch/large, batch]", "[batch]"))

    (warning,) = settings.warnings
    assert str(warning) == (
        "c.yaml:5:3: processors::batch/large: is configured but not used\n"
        "    5 |   batch/large: {timeout: 1s}\n"
        "      |   ^^^^^^^^^^^\n"
        "  list it in a pipeline, or remove it"
    )


@pytest.mark.parametrize(
    ("telemetry", "metrics", "logs"),
    [
        ("{}", MetricsSettings("normal", ("localhost", 8888)), LogsSettings("info", None)),
        ("{metrics: {level: none}}", MetricsSettings("none", None), LogsSettings()),
        ("{metrics: {readers: []}}", MetricsSettings("normal", None), LogsSettings()),
        ('{metrics: {address: "[::1]:0"}}', MetricsSettings("normal", ("::1", 0)), LogsSettings()),
        (
            "{metrics: {level: detailed, readers: [{pull: {exporter: {prometheus: {host: localhost, port: 9}}}}]}}",
            MetricsSettings("detailed", ("localhost", 9)),
            LogsSettings(),
        ),
        ("{logs: {level: DEBUG, encoding: json}}", MetricsSettings(), LogsSettings("debug", "json")),
    ],
)
def test_telemetry_takes_the_collectors_forms(telemetry: str, metrics: MetricsSettings, logs: LogsSettings) -> None:
    settings = read(WHOLE.replace("service:\n", f"service:\n  telemetry: {telemetry}\n"))

    assert (settings.service.telemetry.metrics, settings.service.telemetry.logs) == (metrics, logs)
    assert settings.warnings == ()


def test_a_metrics_page_for_the_whole_network_is_warned_of() -> None:
    settings = read(WHOLE.replace("service:\n", "service:\n  telemetry: {metrics: {address: '0.0.0.0:8888'}}\n"))

    assert [warning.message for warning in settings.warnings] == [
        "the metrics page listens on 0.0.0.0, not only on this host"
    ]


@pytest.mark.parametrize(
    ("telemetry", "headline"),
    [
        ("{metrics: {readers: [{}]}}", "readers::0: names no kind of reader"),
        (
            "{metrics: {readers: [{pull: {exporter: {prometheus: {}}}}, {pull: {exporter: {prometheus: {}}}}]}}",
            "metrics::readers: has more than one pull",
        ),
        (
            "{metrics: {address: 'x:1', readers: []}}",
            "metrics::address: address and readers are both given",
        ),
        ("{logs: {level: loud}}", "service::telemetry::logs::level: must be one of debug, info, warn, error"),
        ("{traces: {level: loud}}", "service::telemetry::traces::level: must be one of none, basic, normal, detailed"),
        ("{resource: {a: 1}}", "service::telemetry::resource::a: must be text"),
    ],
)
def test_telemetry_that_is_not_offered_is_refused(telemetry: str, headline: str) -> None:
    (found,) = refusal(WHOLE.replace("service:\n", f"service:\n  telemetry: {telemetry}\n"))

    assert headline in found


def test_what_has_no_effect_is_accepted_with_a_warning() -> None:
    settings = read("""\
receivers: {otlp: {protocols: {grpc: {include_metadata: true}, http: {include_metadata: false}}}}
processors: {batch: {metadata_keys: [tenant], metadata_cardinality_limit: 10}}
exporters: {otlp: {endpoint: "localhost:1", balancer_name: round_robin, sending_queue: {batch: {}}}}
extensions: {pprof: , zpages/one: {endpoint: "localhost:1"}, memory_ballast: {size_mib: 1}}
service:
  extensions: [pprof, zpages/one]
  telemetry: {metrics: {readers: [{periodic: {exporter: {otlp: {endpoint: x}}}}]}}
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}}
""")
    paths = {"::".join(map(str, warning.path)) for warning in settings.warnings}
    assert paths == {
        "receivers::otlp::protocols::grpc::include_metadata",
        "processors::batch::metadata_keys",
        "processors::batch::metadata_cardinality_limit",
        "exporters::otlp::balancer_name",
        "exporters::otlp::sending_queue::batch",
        *("extensions::pprof", "extensions::zpages/one", "extensions::memory_ballast"),
        "service::telemetry::metrics::readers::0::periodic",
    }
    assert settings.service.extensions == ()
    assert settings.service.telemetry.metrics.address is None


def test_python_values_are_checked_like_text() -> None:
    mapping: Mapping[str, Any] = Document.from_text(WHOLE).plain()

    assert read_settings(Document.from_mapping(mapping)).pipelines == read(WHOLE).pipelines


def test_only_configured_components_are_imported() -> None:
    code = (
        "import sys; from podtrail.config import Document; from podtrail.pipeline.settings import read_settings;"
        "read_settings(Document.from_text(sys.stdin.read()));"
        "print(*sorted(name for name in sys.modules if name.startswith(('podtrail_exporters.', 'grpc', 'aiohttp'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], input=WHOLE, capture_output=True, text=True, check=True)

    assert "podtrail_exporters.debug" in loaded.stdout
    assert "podtrail_exporters.otlp_grpc" not in loaded.stdout
    assert "aiohttp" not in loaded.stdout
