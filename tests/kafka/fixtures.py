"""Tests marked `kafka` run on real brokers; where there are none, the skip says what is missing."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built import BUILT
from tests.kafka.cluster import Kafka

DEFAULT_ASSETS = BUILT / "kafka-4.1.1"


@pytest.fixture(scope="session")
def kafka_assets() -> Path:
    """The folder of what a broker is made of; skips the test, saying what is missing."""
    if shutil.which("java") is None:
        pytest.skip("needs java (17 or newer), to run Kafka brokers")
    folder = Path(os.environ.get("PODTRAIL_KAFKA_ASSETS") or DEFAULT_ASSETS)
    if not (folder / "bootstrap.checkpoint").is_file():
        pytest.skip(
            f"needs Kafka's jars in {folder} or where PODTRAIL_KAFKA_ASSETS says; "
            "tests/kafka/build.sh fetches them with Maven (mvn)"
        )
    return folder


@pytest.fixture(scope="session")
def start_kafka(kafka_assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Kafka]]:
    """Starts clusters: `brokers`, `secured`, `properties`. What the caller does not stop ends with the session."""
    started: list[Kafka] = []

    def start(**options: Any) -> Kafka:
        if options.get("secured") and shutil.which("openssl") is None:
            pytest.skip("needs openssl, to make the brokers' certificates")
        kafka = Kafka(kafka_assets, tmp_path_factory.mktemp("kafka"), **options)
        started.append(kafka)
        kafka.start()
        return kafka

    try:
        yield start
    finally:
        for kafka in started:
            kafka.stop()


@pytest.fixture(scope="session")
def shared_kafka(start_kafka: Callable[..., Kafka]) -> Kafka:
    """The one broker that all tests of the session share; for `kafka`, not for tests."""
    return start_kafka()


@pytest.fixture
def kafka(shared_kafka: Kafka) -> Iterator[Kafka]:
    """One broker, without TLS or SASL, that creates topics when they are first asked for. Take topics of your own."""
    yield shared_kafka
    shared_kafka.mend()


@pytest.fixture(scope="session")
def shared_kafka_of_three(start_kafka: Callable[..., Kafka]) -> Kafka:
    """The three brokers that all tests of the session share; for `kafka_of_three`, not for tests."""
    return start_kafka(brokers=3)


@pytest.fixture
def kafka_of_three(shared_kafka_of_three: Kafka) -> Iterator[Kafka]:
    """Three brokers, topics with three replicas; what a test stalls, stops or kills is mended after it."""
    yield shared_kafka_of_three
    shared_kafka_of_three.mend()


@pytest.fixture(scope="session")
def secured_kafka(start_kafka: Callable[..., Kafka]) -> Kafka:
    """One broker that listens with SASL (PLAIN, SCRAM), with TLS and client certificates, and with both, too."""
    return start_kafka(secured=True)
