"""The `k8s_pods` receiver: watches the Pods of a cluster, and tells each of their transitions as a small span."""

from typing import Any

from pydantic import Field, field_validator

from podtrail.component import Context, Factory
from podtrail_receivers.kubernetes_api import KubernetesConfig

__all__ = ["FACTORY", "Config"]


class Config(KubernetesConfig):
    """Which Pods are watched; this needs get, list and watch on pods, and on events with `events`."""

    namespaces: tuple[str, ...] = Field((), description="Only Pods of these namespaces; empty: of all.")
    label_selector: str = Field("", description="Only Pods with these labels, for instance `app=web,tier!=test`.")
    field_selector: str = Field(
        "", description="Only Pods with these fields, for instance `spec.nodeName=node-1` on an agent of that node."
    )

    events: bool = Field(
        False,
        description="Also watch Events that warn of these Pods, for example of volumes that can't be mounted.",
    )

    @field_validator("namespaces")
    @classmethod
    def _check_namespaces(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not name or "/" in name or not name.isascii():
                raise ValueError(f"{name!r} is no namespace's name")
        if len(set(names)) < len(names):
            raise ValueError("a namespace stands here twice")
        return names


def _create(config: Config, context: Context) -> Any:
    from podtrail_receivers.k8s_pods.receiver import PodsReceiver

    return PodsReceiver(config, context)


FACTORY = Factory(kind="receiver", type="k8s_pods", Config=Config, create=_create)
