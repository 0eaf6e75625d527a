"""Our scheduler, the whole of it, on the simulated API server, in virtual time."""

import json
from collections.abc import Sequence
from functools import cache

from podtrail_scheduler.cluster.simulated.api_server import PodPlan, SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.cycles.attempt import AttemptRecord, ScoreExplanation
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.registry import available, extension_points, make_profile

from .builders import as_stored
from .case import Object
from .profiles import configuration

_START = 1_767_225_600 * SECOND + 7200 * SECOND
"""Two hours after the first of the Pods that run began."""
_ATTEMPT = 5 * SECOND
"""Longer than an attempt takes, shorter than a Pod takes to terminate."""
_PLAN = PodPlan(None, 3600 * SECOND, 0, "")


_makers = cache(available)
"""What is installed is looked up once."""


@cache
def _profiles() -> dict[str, ProfileConfiguration]:
    features = FeatureGates()
    read_configuration, source = read(json.dumps(configuration()), "profiles.yaml", features)
    check(read_configuration, features, source)
    resolved = resolve(read_configuration, extension_points(_makers()), features, source)
    return {profile.scheduler_name: profile for profile in resolved}


class Bench:
    """A scheduler with one profile, beside a cluster."""

    def __init__(self, profile: str, objects: Sequence[Object]) -> None:
        self._timeline = Timeline(_START, "")
        self.api_server = SimulatedApiServer(self._timeline, bind_takes=1)
        self.nodes = Cache()
        handle = Handle(self._timeline, self.api_server, self.nodes.nodes)
        self.claims = handle.listers
        built = make_profile(handle, _profiles()[profile], _makers())
        self.records: dict[str, AttemptRecord] = {}
        self.order: list[str] = []
        self.explanations: dict[str, ScoreExplanation] = {}
        self.scheduler = Scheduler(
            [(built, handle)],
            self.nodes,
            tracer=None,
            on_attempt=self._ended,
            explain=self._explained,
            log=lambda _: None,
        )
        self.api_server.watch.watcher = self.scheduler
        for obj in objects:
            self.create(obj)
        self.settle()

    def create(self, obj: Object) -> None:
        """Somebody creates an object; a Pod's key is its uid."""
        decoded = _decoded(obj)
        if isinstance(decoded, Pod):
            self.api_server.create_pod(decoded, _PLAN)
        elif isinstance(decoded, Node):
            self.api_server.add_node(decoded)
        else:
            self.api_server.objects.put(decoded)

    def tell(self, old: Object | None, new: Object | None) -> None:
        """The watch shows an object as it was and as it is."""
        before, after = (None if each is None else _decoded(each) for each in (old, new))
        if isinstance(before or after, Pod | Node):
            self.api_server.watch.tell(before, after)
        elif after is not None:
            self.api_server.objects.put(after)
        elif before is not None:
            self.api_server.objects.remove(before)
        self.settle()

    def _explained(self, pod: Pod, explanation: ScoreExplanation) -> None:
        self.explanations.setdefault(pod.uid, explanation)

    def settle(self) -> None:
        """What is under way ends."""
        until = self._timeline.now() + _ATTEMPT
        while (due := self._timeline.next_time()) is not None and due <= until:
            self._timeline.step()

    def attempt(self) -> str:
        """Attempts the next Pod; the node that was chosen for it, empty when none was."""
        chosen = ""

        async def schedule() -> None:
            nonlocal chosen
            before = {uid for uid in self.api_server.pods if self.nodes.is_assumed(uid)}
            await self.scheduler.schedule_one()
            for uid in self.api_server.pods:
                placed = self.nodes.pod(uid)
                if placed is not None and self.nodes.is_assumed(uid) and uid not in before:
                    chosen = placed.node_name

        self._timeline.spawn(schedule())
        self.settle()
        return chosen

    def _ended(self, record: AttemptRecord) -> None:
        self.records.setdefault(record.pod.uid, record)
        self.order.append(record.pod.name)


def _decoded(obj: Object) -> ApiObject:
    return decode(_with_identity(as_stored(obj) if obj["kind"] == "Pod" else obj))


def _with_identity(obj: Object) -> Object:
    metadata = obj["metadata"]
    uid = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
    return {**obj, "metadata": {"uid": uid, **metadata}}
