"""The contracts between podtrail and its components, and the registry that finds them."""

from podtrail.component.contracts import (
    AdmitsBatches,
    AdmitsRequests,
    AdmittingConsumer,
    BatchObserver,
    Consumer,
    DecidingConfig,
    Exporter,
    Extension,
    ImmediateConsumer,
    PassesOn,
    PipelineWatcher,
    Processor,
    Receiver,
    StoringConfig,
    Taken,
    WantsArrivals,
    WantsVerdicts,
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
from podtrail.component.factory import Context, Factory, IncomingBytes, Kind
from podtrail.component.facts import FactListener, GatedPod
from podtrail.component.ledger import Ledger
from podtrail.component.metrics import Counter, Gauge, Histogram, Metrics
from podtrail.component.passing import PassingProcessor

__all__ = [
    "AdmitsBatches",
    "AdmitsRequests",
    "AdmittingConsumer",
    "BatchObserver",
    "ComponentError",
    "Consumer",
    "Context",
    "Counter",
    "DecidingConfig",
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
    "PassingProcessor",
    "Permanent",
    "PipelineWatcher",
    "Processor",
    "Receiver",
    "Refused",
    "Retryable",
    "StartError",
    "StoringConfig",
    "Taken",
    "WantsArrivals",
    "WantsVerdicts",
]
