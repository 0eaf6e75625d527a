"""Asks the real kube-scheduler: `python -m tests.scheduler.differential.record` writes its answers to all cases.

One control plane serves all cases; the cluster of each is made, asked about and taken away again.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path

from tests.envtest.control_plane import DEFAULT_ASSETS, ControlPlane, Refusal

from . import answers
from .answers import Answer, Answers
from .attempt_log import Attempt, name_of
from .builders import ADMINISTRATORS, NAMESPACE, administrators, namespaces
from .case import Case, Change, Object, of_kind
from .claims import EXTENDED, MAPPED, may_have_devices, told
from .generate import cases
from .log import Log
from .profiles import configuration

# What would change what a case says, or needs a controller that is not there.
_ADMISSION = "TaintNodesByCondition,Priority,DefaultTolerationSeconds,StorageObjectInUseProtection,RuntimeClass"
_ALPHA = ("DRADeviceCompatibilityGroups", "DRAListTypeAttributes", "DRAOptionalNodeOperations", "DRADerivedAttributes")
"""What the API server keeps though kube-scheduler does without, so that objects have fields which it does not know."""
_VERBOSITY = (
    "-v=4",
    "--vmodule=schedule_one=10,scheduling_queue=6,active_queue=6,backoff_queue=6",
    "--feature-gates=OpportunisticBatching=false",
)

_PATHS = {
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
}
_CHANGES = ("Add", "Update", "Delete")
_CHANGES_OF_BOUND = tuple(f"{change} event for scheduled pod" for change in _CHANGES)
_CHANGES_OF_NODES = tuple(f"{change} event for node" for change in _CHANGES)
_OF_CREATION = {"Node"}
"""Kinds whose status is kept when they are created."""


class Recorder:
    """Puts cases to the kube-scheduler of a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._api = plane.api
        for namespace in (*namespaces(), administrators()):
            if namespace["metadata"]["name"] != "default":
                self._api.create("/api/v1/namespaces", namespace)
        self._log = Log(self._start())
        self._pool = ThreadPoolExecutor(4)

    def close(self) -> None:
        """Asks no more; the control plane is its maker's."""
        self._log.close()
        self._pool.shutdown()

    def _start(self) -> Path:
        client = {"clientConnection": {"qps": 1000, "burst": 1000}}
        return self._plane.start_scheduler({**configuration(), **client}, _VERBOSITY)

    def ask(self, case: Case) -> Answers:
        """Leaves the cluster empty again."""
        if case.family == "PrioritySort":
            return self._ask_for_the_order(case)
        self._make(case.objects)
        if case.change is not None:
            steps = [self._schedule_and_change(case.pods[0], case.change)]
        else:
            steps = []
            for pod, changes in case.rounds:
                self._live_through(changes)
                steps.append(self._schedule(pod))
        self._clear(case)
        return Answers(case.name, case.digest, tuple(steps))

    def _ask_for_the_order(self, case: Case) -> Answers:
        self._plane.stop_one("kube-scheduler")
        for obj in (*case.objects, *case.pods):
            self._create(obj)
        self._start()
        waiting, order = {_key(pod) for pod in case.pods}, []
        for line in self._log.lines():
            if line.message == "Attempting to schedule pod" and line.fields["pod"] in waiting:
                order.append(name_of(line.fields["pod"]))
            if line.message == "Successfully bound pod to node":
                waiting.discard(line.fields["pod"])
            if not waiting:
                break
        self._clear(case)
        return Answers(case.name, case.digest, (), tuple(order))

    def _make(self, objects: Sequence[Object]) -> None:
        first = [each for each in objects if each["kind"] not in {"Namespace", "Node", "Pod"}]
        list(self._pool.map(self._create, first))
        nodes, bound = of_kind(objects, "Node"), of_kind(objects, "Pod")
        list(self._pool.map(self._create, nodes))
        seen = Counter({each["metadata"]["name"]: 1 for each in nodes})
        self._await(("Add event for node",), seen)
        list(self._pool.map(self._create, bound))
        changes = Counter({_key(pod): 1 + ("status" in pod) + _is_terminating(pod) for pod in bound})
        self._await(_CHANGES_OF_BOUND, changes)

    def _await(self, messages: tuple[str, ...], expected: Counter[str]) -> None:
        """Reads on until that many of the messages have come of each Pod or node."""
        if not expected:
            return
        for message, fields in self._log.lines():
            told = fields.get("pod") or fields.get("node", "")
            if message in messages and expected.get(told, 0):
                expected -= Counter([told])
                if not expected:
                    return

    def _create(self, obj: Object) -> None:
        path, name = _collection(obj), obj["metadata"]["name"]
        plain = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "deletionTimestamp"}}
        self._api.create(path, plain)
        if "status" in obj and obj["kind"] not in _OF_CREATION:
            self._api.patch(f"{path}/{name}/status", {"status": obj["status"]})
        if _is_terminating(obj):
            self._api.delete(f"{path}/{name}", grace=3600)

    def _schedule(self, pod: Object) -> Answer:
        path, name, key = _collection(pod), pod["metadata"]["name"], _key(pod)
        self._api.create(path, pod)
        answer = Attempt(key).answer(self._log.lines())
        if answer.outcome == "bound" and may_have_devices(pod):
            return answer._replace(devices=self._devices(pod))
        if answer.outcome != "bound" and not answer.nominated:
            self._api.delete(f"{path}/{name}")
            self._await(("Delete event for unscheduled pod",), Counter([key]))
        return answer

    def _schedule_and_change(self, pod: Object, change: Change) -> Answer:
        key = _key(pod)
        self._api.create(_collection(pod), pod)
        answer = Attempt(key).answer(self._log.lines())
        if answer.outcome != "unschedulable":
            raise AssertionError(f"{key} was to wait, but: {answer}")
        self._await(("Pod moved to an internal scheduling queue",), Counter([key]))
        self._change(change)
        updates = 3  # of the Pod: why it waits, the change, the mark
        if change.obj["kind"] == "Pod" and _key(change.obj) == key:
            mark = {"metadata": {"annotations": {"example.com/mark": "set"}}}
            self._api.patch(f"{_collection(pod)}/{pod['metadata']['name']}", mark)
        for message, fields in self._log.lines():
            if message == "Entity moved to an internal scheduling queue" and fields["entity"] == key:
                return answer._replace(requeued_by=fields["event"])
            if message == "Update event for unscheduled pod" and fields["pod"] == key:
                updates -= 1
            if not updates or (message in _NO_REASON_TO_MOVE and _is_of(change, fields["event"])):
                return answer
        raise AssertionError("the log has no end")

    def _live_through(self, changes: Sequence[Change]) -> None:
        """Has the changes happen, and kube-scheduler see those of Pods and nodes."""
        expected: Counter[str] = Counter()
        for change in changes:
            try:
                self._change(change)
            except Refusal as refusal:
                if refusal.code != 404:
                    raise
                continue
            if change.obj["kind"] == "Node":
                expected[change.obj["metadata"]["name"]] += 1
            elif change.obj["kind"] == "Pod":
                created = change.verb == "create" and "status" in change.obj
                expected[_key(change.obj)] += 1 + created
        self._await((*_CHANGES_OF_NODES, *_CHANGES_OF_BOUND), expected)

    def _change(self, change: Change) -> None:
        path = f"{_collection(change.obj)}/{change.obj['metadata']['name']}"
        if change.verb == "create":
            self._create(change.obj)
        elif change.verb == "delete":
            self._api.delete(path)
        else:
            self._api.patch(f"{path}/{change.subresource}".rstrip("/"), change.patch)

    def _devices(self, pod: Object) -> dict[str, tuple[str, ...]]:
        found = {}
        for reference in pod["spec"].get("resourceClaims", ()):
            name = reference["resourceClaimName"]
            claim = self._api.get(f"{_PATHS['ResourceClaim'].format(pod['metadata']['namespace'])}/{name}")
            results = claim["status"]["allocation"]["devices"]["results"]
            found[name] = tuple(sorted(map(told, results)))
        status = self._api.get(f"{_collection(pod)}/{pod['metadata']['name']}")["status"]
        if (extended := status.get("extendedResourceClaimStatus")) is not None:
            path = f"{_PATHS['ResourceClaim'].format(pod['metadata']['namespace'])}/{extended['resourceClaimName']}"
            results = self._api.get(path)["status"]["allocation"]["devices"].get("results", ())
            found[EXTENDED] = tuple(sorted(map(told, results)))
            mappings = extended["requestMappings"]
            told_of = ((each["containerName"], each["resourceName"], each["requestName"]) for each in mappings)
            found[MAPPED] = tuple(map(" ".join, told_of))
        return found

    def _clear(self, case: Case) -> None:
        changes = [*filter(None, [case.change]), *chain.from_iterable(case.between)]
        everything = (*case.objects, *case.pods, *(each.obj for each in changes if each.verb == "create"))
        for namespace in sorted({pod["metadata"]["namespace"] for pod in of_kind(everything, "Pod")}):
            self._api.delete(_PATHS["Pod"].format(namespace))
        kinds = {each["kind"] for each in everything} - {"Namespace", "Pod", "Node"}
        if "DeviceClass" in kinds:  # for which kube-scheduler may have made claims itself
            kinds.add("ResourceClaim")
        for kind in sorted(kinds):
            self._empty(kind)
        gone = Counter({node["metadata"]["name"]: 1 for node in self._api.get(_PATHS["Node"])["items"]})
        self._empty("Node")
        self._await(("Delete event for node",), gone)

    def _empty(self, kind: str) -> None:
        for path in dict.fromkeys(_PATHS[kind].format(namespace) for namespace in (NAMESPACE, ADMINISTRATORS)):
            if kind == "ResourceClaim":  # is kept while it is allocated
                for each in self._api.get(path)["items"]:
                    self._api.patch(f"{path}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
            if kind != "Service":
                self._api.delete(path)
                continue
            for each in self._api.get(path)["items"]:  # they cannot be deleted all at once
                if each["metadata"]["name"] != "kubernetes":
                    self._api.delete(f"{path}/{each['metadata']['name']}")


_NO_REASON_TO_MOVE = {
    "Event is not making entity schedulable",
    "receive an event that isn't interested by any enabled plugins",
}


def _is_of(change: Change, event: str) -> bool:
    """A deletion of a Pod is preceded by an event of its own."""
    return (change.obj["kind"], change.verb) != ("Pod", "delete") or event == "AssignedPodDelete"


def _collection(obj: Object) -> str:
    return _PATHS[obj["kind"]].format(obj["metadata"].get("namespace", ""))


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def start(assets: Path, folder: Path) -> ControlPlane:
    """A control plane whose API server leaves the cases as they are."""
    gates = ",".join(f"{gate}=true" for gate in _ALPHA)
    flags = [f"--disable-admission-plugins={_ADMISSION}", f"--feature-gates={gates}"]
    plane = ControlPlane(assets, folder, apiserver=flags)
    plane.start()
    return plane


def main(families: Sequence[str]) -> None:
    """Records all cases, or those of some families again."""
    asked = [case for case in cases() if not families or case.family in families]
    recorded = dict(answers.read()) if families else {}
    with tempfile.TemporaryDirectory() as folder:
        plane = start(DEFAULT_ASSETS, Path(folder))
        try:
            with closing(Recorder(plane)) as recorder:
                for case in asked:
                    recorded[case.name] = recorder.ask(case)
                    print(case.name, *(step.outcome for step in recorded[case.name].steps), flush=True)
        finally:
            plane.stop()
    answers.write(answers.RECORDED, (recorded[case.name] for case in cases()))


if __name__ == "__main__":
    main(sys.argv[1:])
