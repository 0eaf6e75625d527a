"""To whom a Pod belongs: its owners, their owners and so on, asked of the API server once each."""

from collections.abc import Mapping
from typing import Any

from podtrail_kubernetes.errors import RequestFailed
from podtrail_kubernetes.object_meta import Object, metadata_of
from podtrail_kubernetes.rest_client import RestClient

_MOST_REMEMBERED = 10_000
_MOST_FAILURES = 20
_HIGHEST = 8
"""Generations: a Pod of a CronJob of an operator's object has three."""


class Owners:
    """Knows the owners of what it was asked for; what can't be asked has none, and `failures` says why."""

    def __init__(self, client: RestClient) -> None:
        self.failures: dict[str, str] = {}
        """Of an owner (kind and name), why it could not be read."""
        self._client = client
        self._plurals: dict[str, Mapping[str, str]] = {}
        self._above: dict[str, Object | None] = {}
        """By uid; of an object no more than its metadata."""

    async def of(self, each: Object) -> set[str]:
        """The uids of all that it belongs to."""
        found: set[str] = set()
        level = [each]
        for _ in range(_HIGHEST):
            references = [(above, below) for below in level for above in _references(below)]
            level = []
            for reference, below in references:
                uid = str(reference.get("uid"))
                if uid in found:
                    continue
                found.add(uid)
                owner = await self._read(reference, str(metadata_of(below).get("namespace") or ""))
                if owner is not None:
                    level.append(owner)
        return found

    async def _read(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        uid = str(reference.get("uid"))
        if uid not in self._above:
            if len(self._above) >= _MOST_REMEMBERED:
                self._above.clear()  # they are asked for again
            try:
                owner = await self._ask(reference, namespace)
                self._above[uid] = None if owner is None else {"metadata": metadata_of(owner)}
            except RequestFailed as failure:
                if len(self.failures) < _MOST_FAILURES:
                    self.failures[f"{reference.get('kind')} {reference.get('name')}"] = str(failure)
                self._above[uid] = None
        return self._above[uid]

    async def _ask(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        version, kind = str(reference.get("apiVersion")), str(reference.get("kind"))
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._plurals:
            resources = (await self._client.request("GET", root)).get("resources") or []
            self._plurals[version] = {
                str(each.get("kind")): f"{'namespaces/{}/' if each.get('namespaced') else ''}{each.get('name')}"
                for each in resources
                if isinstance(each, Mapping) and "/" not in str(each.get("name"))
            }
        path = self._plurals[version].get(kind)
        if path is None:
            return None
        return await self._client.request("GET", f"{root}/{path.format(namespace)}/{reference.get('name')}")


def _references(each: Object) -> list[Mapping[str, Any]]:
    references = metadata_of(each).get("ownerReferences")
    return [each for each in references if isinstance(each, Mapping)] if isinstance(references, list) else []
