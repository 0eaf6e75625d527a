import pytest
from podtrail_instrumentation import TracingConfiguration, validate_tracing_configuration
from pydantic import ValidationError

NAMING = "See https://github.com/grpc/grpc/blob/master/doc/naming.md"


def errors(text: dict[str, object]) -> list[str]:
    return [str(each) for each in validate_tracing_configuration(TracingConfiguration.model_validate(text))]


def test_reads_the_two_fields_of_component_base() -> None:
    configuration = TracingConfiguration.model_validate({"endpoint": "otel:4317", "samplingRatePerMillion": 10000})
    assert (configuration.address, configuration.sampling_rate_per_million) == ("otel:4317", 10000)


def test_nothing_means_localhost_and_no_root_sampled() -> None:
    configuration = TracingConfiguration.model_validate({})
    assert (configuration.address, configuration.sampling_rate_per_million) == ("localhost:4317", None)


@pytest.mark.parametrize("text", [{"rate": 1}, {"samplingRatePerMillion": 2**31}, {"samplingRatePerMillion": "5"}])
def test_refuses_what_the_go_struct_could_not_hold(text: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TracingConfiguration.model_validate(text)


def test_a_negative_rate_has_component_bases_text() -> None:
    [error] = errors({"samplingRatePerMillion": -1})
    assert error == "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"


def test_a_rate_above_a_million_has_component_bases_text() -> None:
    [error] = errors({"samplingRatePerMillion": 1_000_001})
    assert error == (
        "tracing.samplingRatePerMillion: Invalid value: 1000001: "
        "sampling rate per million must be less than or equal to one million"
    )


@pytest.mark.parametrize("rate", [0, 1, 1_000_000])
def test_rates_from_none_to_all_are_valid(rate: int) -> None:
    assert errors({"samplingRatePerMillion": rate}) == []


@pytest.mark.parametrize(
    "endpoint", ["localhost:4317", "dns://1.1.1.1/collector:4317", "unix:///run/otel.sock", "unix-abstract://name", ""]
)
def test_accepts_grpc_names(endpoint: str) -> None:
    assert errors({"endpoint": endpoint}) == []


def test_another_scheme_has_component_bases_text() -> None:
    [error] = errors({"endpoint": "http://localhost:4317"})
    assert error == (
        'tracing.endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  '
        f"Options are none, dns, unix, or unix-abstract.  {NAMING}"
    )


def test_an_unreadable_endpoint_is_named() -> None:
    [error] = errors({"endpoint": "localhost:port"})
    assert error.startswith('tracing.endpoint: Invalid value: "dns://localhost:port": parse "dns://localhost:port": ')


def test_all_errors_come_at_once() -> None:
    assert len(errors({"endpoint": "ftp://x", "samplingRatePerMillion": -5})) == 2
