"""One resource of an API server, listed and then watched, for as long as somebody wants to know it.

    async def take(change: Change) -> None: ...

    reflector = Reflector(client, ListWatch("/api/v1/pods", field_selector="spec.nodeName="), random.Random())
    await reflector.run(take)        # until cancelled

`take` first gets one `Listed` with everything there is, then `Added`, `Modified` and `Deleted` as they happen, each
with the object as the plain mapping that JSON gives. It is awaited: a slow one slows the watch and loses nothing.

What the API server or the network does in between doesn't show, only what differs then. A watch that ends is resumed at
the last resourceVersion seen, bookmarks included. Where that can't be (410 in any of its forms, a watch that fails
without having brought anything), everything is listed again and compared with what is known: what is new, other or
gone comes as `Added`, `Modified` and `Deleted`, the latter with `inferred=True` and no more of the object than its
identity (`metadata.namespace`, `name`, `uid`, the last known `resourceVersion`). Changes are therefore a consistent
story of each object: Added, Modified any number of times, Deleted; never twice the same resourceVersion; an object
recreated under its name is Deleted (perhaps inferred) and Added. Intermediate states may be missing.

Failures are told to the log, counted in `counters` and tried again with a jittered exponential back-off, no earlier
than a Retry-After says. `StatusError` by authorization is a failure like any other: RBAC may be mended while we wait.
Semantics are client-go's (tools/cache.Reflector); sources: KEP-365, KEP-956, the API concepts page.
"""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from .errors import RequestFailed, StatusError, Unreachable
from .object_meta import NamespacedName, Object, ObjectVersion, is_identified, key_of, metadata_of, skeleton, version_of
from .rest_client import RestClient

_SHORT_WATCH = 1.0
"""Seconds: a watch that ends sooner, and empty, ended for a reason."""

_log = logging.getLogger(__name__)


class ListWatch(NamedTuple):
    """What to watch: the path of a collection, all namespaces or one, narrowed by selectors."""

    path: str
    field_selector: str = ""
    label_selector: str = ""


class Listed(NamedTuple):
    """Everything there is at the beginning."""

    objects: Sequence[Object]


class Added(NamedTuple):
    """An object is new, or came to be selected."""

    object: Object


class Modified(NamedTuple):
    """An object changed."""

    object: Object


class Deleted(NamedTuple):
    """An object is gone, or no longer selected: its last state, or its identity alone when `inferred` from a list."""

    object: Object
    inferred: bool = False


Change = Listed | Added | Modified | Deleted


class ReflectorTiming(NamedTuple):
    """Seconds. The defaults are client-go's, but for `idle`: HTTP/1.1 has no ping, and bookmarks come every minute."""

    watch: float = 300.0
    """A watch is asked to last this long to twice as long."""
    idle: float = 120.0
    """Without a byte for so long the connection counts as broken."""
    first_back_off: float = 0.8
    longest_back_off: float = 30.0


@dataclass(slots=True)
class ReflectorCounters:
    """What happened so far."""

    lists: int = 0
    watches: int = 0
    expired: int = 0
    """Answers of 410: the resourceVersion or the continue token was too old."""
    failures: int = 0
    repeated: int = 0
    """Events that said nothing new."""
    unidentified: int = 0
    """Objects passed over because name, uid or resourceVersion are missing or no text."""


class Reflector:
    """Lists and watches one resource."""

    def __init__(
        self,
        client: RestClient,
        resource: ListWatch,
        rng: random.Random,
        *,
        timing: ReflectorTiming | None = None,
        page: int = 500,
        failed: Callable[[RequestFailed], None] | None = None,
    ) -> None:
        """Begins nothing yet.

        Args:
            client: Whose user may list and watch it.
            resource: What to list and watch.
            rng: Draws the jitter of watches and back-offs.
            timing: By default client-go's.
            page: How many objects are listed at a time.
            failed: Told of each failure, as the log is.
        """
        self.resource = resource
        self.counters = ReflectorCounters()
        self.last_failure: RequestFailed | None = None
        """Why nothing comes at the moment; None while all is well."""
        self._client = client
        self._rng = rng
        self._timing = timing or ReflectorTiming()
        self._page = page
        self._tell_failure = failed
        self._known: dict[NamespacedName, ObjectVersion] = {}
        self._listed = False
        self._failed_in_a_row = 0

    async def run(self, take: Callable[[Change], Awaitable[None]]) -> NoReturn:
        """Gives `take` every change. Ends by cancellation, or with what `take` raises."""
        version = ""
        while True:
            if not version:
                listed = await self._list()
                if listed is None:
                    continue
                objects, version = listed
                await self._take_list(objects, take)
            version = await self._watch(version, take)

    async def _list(self) -> tuple[list[Object], str] | None:
        """Returns all objects and the resourceVersion of the list; None, after a while, when that failed."""
        self.counters.lists += 1
        objects: list[Object] = []
        query = self._selectors() | {"limit": str(self._page)}
        try:
            while True:
                answer = await self._client.request("GET", self.resource.path, query=query, retries=0)
                metadata = metadata_of(answer)
                objects += self._followed(_items(answer, self.resource.path))
                token = metadata.get("continue")
                if not token:
                    break
                query["continue"] = str(token)
        except RequestFailed as failure:
            await self._failed("list", failure)
            return None
        version = metadata.get("resourceVersion")
        if not version:
            await self._failed("list", Unreachable(f"GET {self.resource.path}: a list without a resourceVersion"))
            return None
        self.last_failure = None
        return objects, str(version)

    async def _take_list(self, objects: Sequence[Object], take: Callable[[Change], Awaitable[None]]) -> None:
        before, self._known = self._known, {key_of(each): version_of(each) for each in objects}
        if not self._listed:
            self._listed = True
            await take(Listed(objects))
            return
        for key, known in before.items():
            now = self._known.get(key)
            if now is None or now.uid != known.uid:
                await take(Deleted(skeleton(key, known), inferred=True))
        for each in objects:
            known_before = before.get(key_of(each))
            now = version_of(each)
            if known_before is None or known_before.uid != now.uid:
                await take(Added(each))
            elif known_before != now:
                await take(Modified(each))

    async def _watch(self, version: str, take: Callable[[Change], Awaitable[None]]) -> str:
        """Watches until the watch ends; returns where to go on, empty when all must be listed again."""
        self.counters.watches += 1
        lasts = self._timing.watch * (1 + self._rng.random())
        query = self._selectors() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(round(lasts), 1)),
        }
        start, since, opened = version, asyncio.get_running_loop().time(), False
        try:
            async with self._client.stream(self.resource.path, query, idle=self._timing.idle) as batches:
                opened, self.last_failure = True, None
                async for lines in batches:
                    for line in filter(None, lines):
                        version = await self._take_event(line, take) or version
                        self._succeeded()
        except StatusError as refused:
            await self._failed("watch", refused)
            return version if refused.code == 429 or (refused.retry_after and not refused.expired) else ""
        except Unreachable as failure:
            await self._failed("watch", failure)
            # Where nothing was heard, this resourceVersion may be one that the server waits for in silence.
            return version if version != start or not opened else ""
        if version == start and asyncio.get_running_loop().time() - since < _SHORT_WATCH:
            await self._pause(None)
        else:
            self._succeeded()
        return version

    async def _take_event(self, line: bytes, take: Callable[[Change], Awaitable[None]]) -> str:
        """Handles one event and returns its resourceVersion."""
        try:
            event = json.loads(line)
            kind, each = event["type"], event["object"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Unreachable(f"watch of {self.resource.path}: no watch event: {line[:80]!r}") from error
        if kind == "ERROR":
            raise StatusError.from_status(each if isinstance(each, Mapping) else {})
        version = str(metadata_of(each).get("resourceVersion") or "")
        if not version:
            raise Unreachable(f"watch of {self.resource.path}: a {kind} event without a resourceVersion")
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise Unreachable(f"watch of {self.resource.path}: an event of the unknown type {kind!r:.80}")
        if kind != "BOOKMARK" and self._followed([each]):
            await (self._take_deletion if kind == "DELETED" else self._take_state)(each, take)
        return version

    def _followed(self, objects: Sequence[Object]) -> list[Object]:
        """Returns those that say who they are; the others are told and counted."""
        followed = [each for each in objects if is_identified(each)]
        if missing := len(objects) - len(followed):
            self.counters.unidentified += missing
            _log.warning("%s: %d objects do not say who they are and are passed over", self.resource.path, missing)
        return followed

    async def _take_state(self, each: Object, take: Callable[[Change], Awaitable[None]]) -> None:
        key, now = key_of(each), version_of(each)
        known = self._known.get(key)
        if known == now:
            self.counters.repeated += 1
            return
        self._known[key] = now
        if known is not None and known.uid == now.uid:
            await take(Modified(each))
            return
        if known is not None:
            await take(Deleted(skeleton(key, known), inferred=True))
        await take(Added(each))

    async def _take_deletion(self, each: Object, take: Callable[[Change], Awaitable[None]]) -> None:
        known = self._known.get(key_of(each))
        if known is None or known.uid != version_of(each).uid:
            self.counters.repeated += 1
            return
        del self._known[key_of(each)]
        await take(Deleted(each))

    def _selectors(self) -> dict[str, str]:
        chosen = {"fieldSelector": self.resource.field_selector, "labelSelector": self.resource.label_selector}
        return {name: selector for name, selector in chosen.items() if selector}

    def _succeeded(self) -> None:
        self._failed_in_a_row = 0
        self.last_failure = None

    async def _failed(self, verb: str, failure: RequestFailed) -> None:
        """Tells and counts it, and waits for as long as is decent."""
        expired = isinstance(failure, StatusError) and failure.expired
        if expired:
            self.counters.expired += 1
        else:
            self.counters.failures += 1
            self.last_failure = failure
        # A watch in which nothing happens for long looks like one whose peer is gone: either is opened anew.
        quiet = verb == "watch" and isinstance(failure.__cause__, TimeoutError)
        level = logging.INFO if expired or quiet else logging.WARNING
        _log.log(level, "failed to %s %s: %s", verb, self.resource.path, failure)
        if self._tell_failure is not None and not expired and not quiet:
            self._tell_failure(failure)
        if expired and not self._failed_in_a_row:
            self._failed_in_a_row = 1  # the first time it is nobody's trouble: list at once
            return
        await self._pause(failure.retry_after if isinstance(failure, StatusError) else None)

    async def _pause(self, at_least: float | None) -> None:
        self._failed_in_a_row += 1
        doubled = self._timing.first_back_off * 2.0 ** min(self._failed_in_a_row - 1, 30)
        back_off = min(doubled, self._timing.longest_back_off) * (1 + self._rng.random())
        await asyncio.sleep(max(back_off, at_least or 0.0))


def _items(answer: Object, path: str) -> list[dict[str, Any]]:
    """Returns the items of a list with what only the list says: their kind and apiVersion."""
    items = answer.get("items") or []
    if not isinstance(items, list):
        raise Unreachable(f"GET {path}: the answer is no list of objects")
    kind, version = str(answer.get("kind", "")).removesuffix("List"), answer.get("apiVersion", "")
    for each in filter(is_identified, items):
        each.setdefault("kind", kind)
        each.setdefault("apiVersion", version)
    return items
