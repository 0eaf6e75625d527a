"""The contracts between the house and its components, and the registry that finds them."""

from podtrail.component.arriving import IncomingBytes
from podtrail.component.contracts import (
    AdmittingConsumer,
    BatchObserver,
    Consumer,
    Exporter,
    Extension,
    ImmediateConsumer,
    PassesOn,
    PipelineWatcher,
    Processor,
    Receiver,
    Taken,
)
from podtrail.component.errors import (
    ComponentError,
    DeliveryError,
    Lost,
    Permanent,
    Refused,
    Retryable,
    StartError,
)
from podtrail.component.factory import Context, Factory, Kind
from podtrail.component.facts import FactListener, GatedPod
from podtrail.component.ledger import Ledger
from podtrail.component.metrics import Counter, Gauge, Histogram, Metrics

__all__ = [
    "AdmittingConsumer",
    "BatchObserver",
    "ComponentError",
    "Consumer",
    "Context",
    "Counter",
    "DeliveryError",
    "Exporter",
    "Extension",
    "FactListener",
    "Factory",
    "GatedPod",
    "Gauge",
    "Histogram",
    "ImmediateConsumer",
    "IncomingBytes",
    "Kind",
    "Ledger",
    "Lost",
    "Metrics",
    "PassesOn",
    "Permanent",
    "PipelineWatcher",
    "Processor",
    "Receiver",
    "Refused",
    "Retryable",
    "StartError",
    "Taken",
]
