"""`kafka`: writes spans into a Kafka topic, keyed by trace or by Pod where asked, with the Collector's keys.

Needs the extra `podtrail[kafka]`.
"""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory, StartError
from podtrail_exporters.kafka.config import Config

if TYPE_CHECKING:
    from podtrail_exporters.kafka.exporter import KafkaExporter


def create(config: Config, context: Context) -> "KafkaExporter":
    """Make the exporter.

    Raises:
        StartError: the client of Kafka is not installed.
    """
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise StartError("needs podtrail's extra [kafka]: pip install '.[kafka]' in its checkout") from error
    from podtrail_exporters.kafka.exporter import KafkaExporter

    return KafkaExporter(config, context)


FACTORY = Factory(kind="exporter", type="kafka", Config=Config, create=create)
