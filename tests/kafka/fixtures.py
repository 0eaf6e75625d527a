"""Tests marked `kafka` run on real brokers; where there are none, the skip says what is missing."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built import BUILT
from tests.kafka.cluster import Kafka
from tests.recorder import report_log

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
    """Start clusters: `brokers`, `secured`, `properties`. They end with the session, unless the caller stops them."""
    with contextlib.ExitStack() as ending:

        def start(**options: Any) -> Kafka:
            kafka = Kafka(kafka_assets, tmp_path_factory.mktemp("kafka"), **options)
            ending.callback(kafka.stop)
            for broker in kafka.brokers:
                name = f"{broker.folder.parent.name}/{broker.folder.name}/{broker.log.name}"
                ending.enter_context(report_log(name, broker.said))
            kafka.start()
            return kafka

        yield start


@pytest.fixture(scope="session")
def shared_kafka(start_kafka: Callable[..., Kafka]) -> Kafka:
    """The one broker that all tests of the session share; for `kafka`, not for tests."""
    return start_kafka(secured=shutil.which("openssl") is not None)


@pytest.fixture
def kafka(shared_kafka: Kafka) -> Iterator[Kafka]:
    """One broker that creates topics on first use; the test takes topics of its own, and may stall, stop or kill it."""
    yield shared_kafka
    shared_kafka.mend()


@pytest.fixture
def secured_kafka(kafka: Kafka) -> Kafka:
    """The same broker, by its listeners with SASL (PLAIN, SCRAM), with TLS and client certificates, and with both."""
    if kafka.authority is None:
        pytest.skip("needs openssl, to make the broker's certificates")
    return kafka


@pytest.fixture(scope="session")
def shared_kafka_of_three(start_kafka: Callable[..., Kafka]) -> Kafka:
    """The three brokers that all tests of the session share; for `kafka_of_three`, not for tests."""
    return start_kafka(brokers=3)


@pytest.fixture
def kafka_of_three(shared_kafka_of_three: Kafka) -> Iterator[Kafka]:
    """Three brokers, topics with three replicas; brokers that a test stalls, stops or kills run again after it."""
    yield shared_kafka_of_three
    shared_kafka_of_three.mend()
