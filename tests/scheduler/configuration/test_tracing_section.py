"""The `tracing` section (KEP-5927), which no kube-scheduler has yet: component-base's words, and the gate it needs."""

import pytest
from podtrail_scheduler.configuration.encoding import encode
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.configuration.features import parse_feature_gates
from podtrail_scheduler.configuration.types import Tracing

from tests.scheduler.configuration.reading import Read

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FIELD = "struct field TracingConfiguration.tracing.samplingRatePerMillion"
TOO_MANY = "sampling rate per million must be less than or equal to one million"
SCHEMES = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"


def test_is_read_and_written(reading: Read) -> None:
    reading.features = parse_feature_gates(["SchedulerTracing=true"])
    configuration = reading(HEAD + "tracing: {endpoint: 'unix:///run/otel', samplingRatePerMillion: 0}\n")

    assert configuration.tracing == Tracing("unix:///run/otel", 0)
    assert "tracing:\n  endpoint: unix:///run/otel\n  samplingRatePerMillion: 0\n" in encode(configuration)
    assert reading.warnings == []


def test_empty_is_not_the_same_as_none(reading: Read) -> None:
    assert reading(HEAD).tracing is None
    assert reading(HEAD + "tracing: {}\n").tracing == Tracing()


def test_warns_when_the_gate_is_off(reading: Read) -> None:
    reading(HEAD + "tracing: {}\n")

    assert reading.warnings == [
        "tracing is configured but has no effect: the feature gate SchedulerTracing is disabled"
    ]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "samplingRatePerMillion: -1",
            "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        ),
        (
            "samplingRatePerMillion: 1000001",
            f"tracing.samplingRatePerMillion: Invalid value: 1000001: {TOO_MANY}",
        ),
        (
            "endpoint: 'http://localhost:4317'",
            f'tracing.endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  {SCHEMES}',
        ),
        (
            "samplingRatePerMillion: 0.5",
            f"json: cannot unmarshal number 0.5 into Go {FIELD} of type int32",
        ),
        ("rate: 1", 'strict decoding error: unknown field "tracing.rate"'),
    ],
)
def test_refuses_what_component_base_refuses(reading: Read, section: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        reading(f"{HEAD}tracing: {{{section}}}\n")

    assert refused.value.message == message
