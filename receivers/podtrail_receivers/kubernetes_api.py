"""How receivers reach an API server: the keys that the Collector's Kubernetes receivers have for it."""

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from podtrail.config.types import Model


class KubernetesConfig(Model):
    """How the API server is reached."""

    auth_type: Literal["serviceAccount", "kubeConfig"] = Field(
        "serviceAccount", description="Who asks: the Pod's ServiceAccount, or the user of a kubeconfig."
    )
    kubeconfig: str = Field("", description="With `kubeConfig`: its path; empty: $KUBECONFIG, else ~/.kube/config.")

    @model_validator(mode="after")
    def _check_kubeconfig(self) -> Self:
        if self.kubeconfig and self.auth_type != "kubeConfig":
            raise ValueError("kubeconfig is read with auth_type: kubeConfig only")
        return self

    def path(self) -> Path | None:
        """Return the kubeconfig's path; None for the ServiceAccount."""
        if self.auth_type == "serviceAccount":
            return None
        return Path(self.kubeconfig or os.environ.get("KUBECONFIG", "") or "~/.kube/config").expanduser()
