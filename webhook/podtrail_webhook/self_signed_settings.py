"""Where `--self-signed` keeps what it makes."""

from collections.abc import Sequence
from typing import NamedTuple


class SelfSignedSettings(NamedTuple):
    """Where everything is."""

    namespace: str
    secret: str
    service: str
    """Its DNS names are what API servers call the webhook by."""
    configuration: str
    """Name of the MutatingWebhookConfiguration."""

    @property
    def names(self) -> Sequence[str]:
        """The DNS names to be certified; API servers ask for the first."""
        within = f"{self.service}.{self.namespace}"
        return (f"{within}.svc", f"{within}.svc.cluster.local", within)
