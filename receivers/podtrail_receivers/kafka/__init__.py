"""The `kafka` receiver: traces from Kafka, each partition decided by itself, in the time of its records."""

from typing import Any

from podtrail.component import Context, Factory, StartError
from podtrail_receivers.kafka.config import Config


def _create(config: Config, context: Context) -> Any:
    try:
        from podtrail_receivers.kafka.receiver import KafkaReceiver
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise StartError("needs podtrail's extra [kafka]: pip install '.[kafka]' in its checkout") from error
    return KafkaReceiver(config, context)


FACTORY = Factory(kind="receiver", type="kafka", Config=Config, create=_create, partitioned=True)
