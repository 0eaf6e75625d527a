from collections.abc import Callable
from typing import Any

import kopf
import pytest
from opentelemetry.sdk.trace import TracerProvider
from podtrail_instrumentation.operators import OperatorTracing

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def tracing(provider: TracerProvider) -> OperatorTracing:
    return OperatorTracing(provider.get_tracer("test"))


@pytest.fixture
def arguments() -> Callable[..., dict[str, Any]]:
    """What kopf calls a handler with, for a Widget with these annotations."""

    def make(annotations: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
        metadata = {"name": "blue", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}
        body = kopf.Body(
            {
                "apiVersion": others.pop("api_version", "example.com/v1"),
                "kind": others.pop("kind", "Widget"),
                "metadata": {**metadata, "annotations": annotations or {}},  # type: ignore[typeddict-item]
                "spec": {"size": 3},
            }
        )
        given = {"retry": 0, "reason": kopf.Reason.CREATE, "body": body, "annotations": body.metadata.annotations}
        return given | others

    return make
