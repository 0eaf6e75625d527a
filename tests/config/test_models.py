"""What the base model and the shared settings accept and refuse."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from podtrail.config.types import (
    DeliverySettings,
    Duration,
    Headers,
    Model,
    QueueSettings,
    RetrySettings,
    TlsClientSettings,
    TlsServerSettings,
)


class Inner(Model):
    default: int = 0


class Sample(Model):
    number: int = 0
    share: float = 0.0
    switch: bool = False
    text: str = ""
    words: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    headers: Headers = Field(default_factory=dict)
    wait: Duration = 0
    maybe: int | None = 7


@pytest.mark.parametrize(
    "values",
    [
        {"number": "10"},
        {"number": True},
        {"number": 1.5},
        {"share": "0.5"},
        {"share": True},
        {"switch": 1},
        {"switch": "true"},
        {"text": 5},
        {"text": True},
        {"words": [1]},
        {"inner": [{"default": "1"}]},
        {"maybe": "7"},
        {"headers": {"a": 1}},
        {"unknown": 1},
        {"unknown": None},
        {"Number": 1},
    ],
)
def test_nothing_is_converted_and_nothing_unknown_is_taken(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Sample.model_validate(values)


def test_a_whole_number_fills_a_fraction_and_a_list_fills_a_tuple_and_1e3_is_a_whole_number() -> None:
    sample = Sample.model_validate({"share": 1, "words": ["a"], "inner": [{"default": 3.0}], "number": 1e3})

    assert (sample.share, sample.words, sample.inner) == (1.0, ("a",), (Inner(default=3),))
    assert repr((sample.number, sample.inner[0].default)) == "(1000, 3)"


def test_a_key_without_a_value_has_its_default() -> None:
    assert Sample.model_validate({"number": None, "maybe": None, "inner": None}) == Sample()


def test_headers_are_never_shown() -> None:
    sample = Sample.model_validate({"headers": {"authorization": "Bearer abc"}})

    assert "abc" not in repr(sample)
    assert "abc" not in str(sample.model_dump())
    assert sample.headers["authorization"].get_secret_value() == "Bearer abc"


def test_delivery_has_the_collectors_defaults() -> None:
    delivery = DeliverySettings()
    second = 1_000_000_000

    assert delivery.timeout == 5 * second
    assert delivery.retry_on_failure == RetrySettings(
        enabled=True,
        initial_interval=5 * second,
        max_interval=30 * second,
        max_elapsed_time=300 * second,
        multiplier=1.5,
        randomization_factor=0.5,
    )
    assert delivery.sending_queue == QueueSettings(
        enabled=True, num_consumers=10, queue_size=1000, sizer="requests", block_on_overflow=False
    )


@pytest.mark.parametrize(
    ("model", "values", "message"),
    [
        (QueueSettings, {"wait_for_result": True}, "podtrail acknowledges spans once its pipeline holds them"),
        (QueueSettings, {"queue_size": 0}, "greater than 0"),
        (RetrySettings, {"max_elapsed_time": "10s"}, "max_elapsed_time must not be shorter"),
        (RetrySettings, {"initial_interval": "-1s"}, "greater than or equal to 0"),
        (TlsClientSettings, {"cert_file": "c.pem"}, "key_file or key_pem is missing"),
        (TlsClientSettings, {"key_file": "k.pem"}, "cert_file or cert_pem is missing"),
        (TlsClientSettings, {"ca_file": "a", "ca_pem": "b"}, "ca_file and ca_pem are both given"),
        (TlsClientSettings, {"min_version": "1.1"}, "'1.2' or '1.3'"),
        (TlsServerSettings, {}, "a server needs a certificate"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_the_reason(
    model: type[Model], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        model.model_validate(values)


def test_giving_up_is_not_compared_when_it_never_happens_or_retry_is_off() -> None:
    RetrySettings.model_validate({"max_elapsed_time": "0s"})
    RetrySettings.model_validate({"enabled": False, "max_elapsed_time": "1s"})
