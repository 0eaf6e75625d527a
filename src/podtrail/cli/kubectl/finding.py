"""Which Pod of the cluster has podtrail's page: gateways before sidecars, by the labels of the manifests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from podtrail.cli.kubectl.client import Kubectl, KubectlError

GATEWAYS: Final = "app.kubernetes.io/name in (podtrail-gateway,podtrail-kafka-gateway)"
SIDECARS: Final = (
    "app.kubernetes.io/name in "
    "(podtrail,podtrail-agent,podtrail-scheduler,podtrail-kube-scheduler,podtrail-stock,second-scheduler,kube-scheduler-2)"
)
STATIC_PODS: Final = "component=kube-scheduler"
_TIERS: Final = (GATEWAYS, SIDECARS, STATIC_PODS)
_CONTAINERS: Final = frozenset({"podtrail", "gateway", "agent"})
_MOST_NAMED: Final = 10


class PodtrailPod(NamedTuple):
    """A Pod that podtrail runs in."""

    namespace: str
    name: str

    @property
    def place(self) -> str:
        """As `--pod` takes it."""
        return f"{self.namespace}/{self.name}"


class WantedPod(NamedTuple):
    """Where podtrail is to be looked for."""

    pod: str = ""
    """NAMESPACE/NAME, or a name in `namespace`; "" for whichever is found."""
    namespace: str = ""
    """"" for all."""
    selector: str = ""
    """Of labels; "" for those of the manifests."""


def find_podtrail(kubectl: Kubectl, wanted: WantedPod) -> PodtrailPod:
    """Return the Pod that is asked.

    Raises:
        KubectlError: there is none, there are several, or the cluster does not say; the text says what was looked for.
    """
    if wanted.pod:
        namespace, slash, name = wanted.pod.rpartition("/")
        if slash and not (namespace and name):
            raise KubectlError("--pod is NAMESPACE/NAME, or NAME with --podtrail-namespace")
        return PodtrailPod(namespace or wanted.namespace or kubectl.namespace() or "default", name)
    where = ("--namespace", wanted.namespace) if wanted.namespace else ("--all-namespaces",)
    told: list[str] = []
    for selector in (wanted.selector,) if wanted.selector else _TIERS:
        try:
            listed = kubectl.get("pods", *where, "--selector", selector)
        except KubectlError as error:
            denied = "orbidden" in str(error) and not wanted.namespace
            hint = "; with rights in one namespace: --podtrail-namespace NAMESPACE" if denied else ""
            raise KubectlError(f"{error}{hint}") from None
        pods = list(_with_podtrail(listed, any_container=bool(wanted.selector)))
        running = sorted(PodtrailPod(*_name(pod)) for pod in pods if _runs(pod))
        if len(running) == 1:
            return running[0]
        if running:
            raise KubectlError(_several(running))
        told += [f"{'/'.join(_name(pod))} ({_phase(pod)})" for pod in pods]
    looked = wanted.selector or "; ".join(_TIERS)
    place = f"namespace {wanted.namespace}" if wanted.namespace else "all namespaces"
    waits = f" There is {', '.join(told[:_MOST_NAMED])}." if told else ""
    raise KubectlError(
        f"no running Pod with podtrail found in {place}, looked for labels: {looked}.{waits} Say which: "
        "--pod NAMESPACE/NAME, or --selector"
    )


def _several(running: Sequence[PodtrailPod]) -> str:
    lines = "".join(f"\n  --pod {pod.place}" for pod in running[:_MOST_NAMED])
    more = f"\n  and {len(running) - _MOST_NAMED:,} more" if len(running) > _MOST_NAMED else ""
    return f"{len(running)} Pods have podtrail, each with a page of its own; say which:{lines}{more}"


def _with_podtrail(listed: Mapping[str, Any], *, any_container: bool) -> Iterator[Mapping[str, Any]]:
    for pod in listed.get("items") or ():
        containers = pod.get("spec", {}).get("containers") or ()
        if any_container or any(one.get("name") in _CONTAINERS or _is_image(one.get("image")) for one in containers):
            yield pod


def _is_image(image: object) -> bool:
    return isinstance(image, str) and image.rpartition("/")[2].partition("@")[0].partition(":")[0] == "podtrail"


def _name(pod: Mapping[str, Any]) -> tuple[str, str]:
    metadata = pod.get("metadata", {})
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _phase(pod: Mapping[str, Any]) -> str:
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "Terminating"
    return str(pod.get("status", {}).get("phase") or "Unknown")


def _runs(pod: Mapping[str, Any]) -> bool:
    return _phase(pod) == "Running"
