"""A cluster that was written down, as a workload: which files it stands in, and what comes of its Pods."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from podtrail_scheduler.objects import ApiObject, Node, Pod
from podtrail_scheduler.objects.decoding import decode_pod
from podtrail_scheduler.objects.durations import Duration, parse_duration

from .values import Section

if TYPE_CHECKING:
    from .manifests import FileContents

_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a Pod that a kubelet runs from a file: no scheduler ever sees it without its node."""


class Objects(NamedTuple):
    """What files hold, in their order."""

    nodes: Sequence[Node] = ()
    placed: Sequence[Pod] = ()
    """Pods that are there from the start, on their nodes."""
    pending: Sequence[Pod] = ()
    """Pods that come, in the order in which they were created."""
    others: Sequence[ApiObject] = ()
    """Volumes, claims, budgets and whatever else plugins look at."""


class _File(str):
    """The path of a file, and what was in it when it was read."""

    __slots__ = ("contents",)
    contents: "FileContents"


def _read(path: str) -> _File:
    from .manifests import read_objects

    file = _File(path)
    file.contents = read_objects(path)
    return file


class ObjectFiles(Section):
    """A cluster that was written down."""

    files: list[Annotated[str, AfterValidator(_read)]] = Field(
        min_length=1,
        description="YAML or JSON as `kubectl get nodes,pods -A -o yaml` writes it, or manifests one behind the other. "
        "What is not found from where podtrail was started is looked for beside the configuration file.",
    )
    reschedule: bool = Field(
        default=False,
        description="Whether Pods that have a node lose it, and come to be scheduled as those without one; false: they "
        "run on it from the start. Pods that have ended or are being deleted are left out.",
    )
    interval: Duration = Field(
        default=parse_duration("100ms"),
        description="How long after each other Pods come, in the order in which they were created.",
    )
    _found: Objects = PrivateAttr(default=Objects())

    @property
    def found(self) -> Objects:
        """What the files held when they were read."""
        return self._found

    @property
    def empty(self) -> str:
        """Which files hold nothing that scheduling looks at, in brackets; empty if all hold something."""
        without = [file for file in self.files if isinstance(file, _File) and not file.contents.objects]
        return f" (nothing for a scheduler in {', '.join(without)})" if without else ""

    @property
    def unknown(self) -> list[str]:
        """Where fields stand that this release does not know: `FILE:LINE:COLUMN: PATH`."""
        return [f"{file}:{each}" for file in self.files if isinstance(file, _File) for each in file.contents.unknown]

    @model_validator(mode="after")
    def _sort(self) -> "ObjectFiles":
        from .admission import PodAdmission
        from .api_defaults import with_classes

        objects: dict[tuple[type, str], ApiObject] = {}
        read = [file.contents for file in self.files if isinstance(file, _File)]
        for contents in read:
            for each in contents.objects:
                if (type(each), each.key) in objects:
                    raise ValueError(f"files have {type(each).__name__} {each.key} twice; name each object once")
                objects[type(each), each.key] = each
        admission = PodAdmission().join(contents.admission for contents in read)
        for contents in read:
            for key, manifest in contents.written.items():
                objects[Pod, key] = decode_pod(admission.admit(manifest))
        classes = [each for contents in read for each in contents.classes]
        wanted = {key: name for contents in read for key, name in contents.wanted.items()}
        there = with_classes(list(objects.values()), classes, wanted)
        nodes = [each for each in there if isinstance(each, Node)]
        names = {node.name for node in nodes}
        placed, pending = [], []
        for pod in there:
            if not isinstance(pod, Pod) or pod.terminated or pod.deletion_timestamp is not None:
                continue
            if pod.node_name and (_MIRROR in pod.annotations or not self.reschedule):
                if pod.node_name in names:
                    placed.append(pod)
            else:
                pending.append(pod.changed(node_name="", nominated_node_name="", phase="Pending", conditions={}))
        others = [each for each in there if not isinstance(each, Node | Pod)]
        self._found = Objects(nodes, placed, sorted(pending, key=lambda pod: pod.creation_timestamp), others)
        return self
