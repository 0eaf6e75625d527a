"""The contracts between the house and its components, and the registry that finds them."""

from podtrail.component.arriving import Arriving
from podtrail.component.contracts import (
    Admits,
    Consume,
    Exporter,
    Extension,
    Immediate,
    Observer,
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
from podtrail.component.ledger import Account
from podtrail.component.metrics import Counter, Gauge, Histogram, Metrics

__all__ = [
    "Account",
    "Admits",
    "Arriving",
    "ComponentError",
    "Consume",
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
    "Immediate",
    "Kind",
    "Lost",
    "Metrics",
    "Observer",
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
