"""Which cluster spans are of, as their resource says it."""

from typing import Final

from podtrail.otlp.values import resource_attributes

CLUSTER_NAME: Final = "k8s.cluster.name"
"""By what a resource says which cluster it is of (OpenTelemetry's semantic conventions)."""
_MARK: Final = CLUSTER_NAME.encode()
_LONGEST: Final = 256


def cluster_name(resource: bytes) -> str:
    """Return how the cluster is called that the `resource` of a group says it is of; "" where it does not say."""
    if _MARK not in resource:
        return ""
    name = resource_attributes(resource).get(CLUSTER_NAME)
    return name[:_LONGEST] if isinstance(name, str) else ""
