"""A client for plugins that ask nothing of the API server; who asks for something overrides that."""

from collections.abc import Mapping
from typing import Any

from podtrail_scheduler.framework.client import Kind, PodCondition
from podtrail_scheduler.objects import ApiObject, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim


class UnaskedClient:
    """Every request is one too many."""

    def get_pod(self, uid: str) -> Pod | None:
        raise NotImplementedError

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        raise NotImplementedError

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        raise NotImplementedError

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        raise NotImplementedError

    async def delete_pod(self, pod: Pod) -> None:
        raise NotImplementedError

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        raise NotImplementedError

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        raise NotImplementedError

    async def delete_object(self, gone: ApiObject) -> None:
        raise NotImplementedError

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:
        raise NotImplementedError
