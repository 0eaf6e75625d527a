"""Those who look on: that they fail at a batch or a fact is said, and is no concern of the pipelines."""

from typing import Any

from podtrail.component import BatchObserver, FactListener, GatedPod
from podtrail.otlp import Batch
from podtrail.pipeline.failures import Failures


class Onlooker:
    """Passes batches and facts on to one who wants them."""

    def __init__(self, component: Any, failures: Failures) -> None:
        self._component = component
        self._failures = failures
        self.observes = isinstance(component, BatchObserver)
        self.listens = isinstance(component, FactListener)

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Show a batch that leaves a pipeline."""
        self._failures.attempt("observe", lambda: self._component.observe(pipeline, batch), None)

    def note(self, fact: GatedPod) -> None:
        """Tell a fact."""
        self._failures.attempt("note", lambda: self._component.note(fact), None)
