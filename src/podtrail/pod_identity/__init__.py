"""Which Pod a span is about: the one extractor of all components that bring together what belongs to a Pod.

Schedulers, kubelets and applications say a Pod's uid. The API server's spans never do: they have its namespace and
name in the path of the request or in the key in etcd, and an audit id by which the spans of one request go together.
Which of several Pods of one name is meant follows from the time. A container runtime has ids of its own, and says of a
few spans only whose they are. `read_clues` reads off a span what it says. A `PodDirectory` learns from that, and says
of any span which Pod it is about and by which evidence, or how many Pods can be meant.
"""

from podtrail.pod_identity.clues import (
    ACCOUNT,
    CLUE_MARK,
    EVENT,
    REQUEST_KEYS,
    RUNTIME_KEYS,
    PodClues,
    read_clues,
    sighting_of_request,
)
from podtrail.pod_identity.clusters import cluster_of, in_cluster
from podtrail.pod_identity.directory import PodDirectory, SavedDirectory, SpanSource
from podtrail.pod_identity.identity import IdentifiedPod, PodEvidence
from podtrail.pod_identity.keys import PodKeys, most_bytes_of_keys
from podtrail.pod_identity.lives import CLOCKS_APART, ClockTime, PodCreation
from podtrail.pod_identity.places import CLOCK_SLACK, Places
from podtrail.pod_identity.sighting import (
    AUDIT_ID,
    CREATE,
    PLACE_MARK,
    POD_UID,
    PODS_MARK,
    READ_KEYS,
    Sighting,
    sighting_in,
    sighting_of,
    sound_place,
    sound_uid,
)

__all__ = [
    "ACCOUNT",
    "AUDIT_ID",
    "CLOCKS_APART",
    "CLOCK_SLACK",
    "CLUE_MARK",
    "CREATE",
    "EVENT",
    "PLACE_MARK",
    "PODS_MARK",
    "POD_UID",
    "READ_KEYS",
    "REQUEST_KEYS",
    "RUNTIME_KEYS",
    "ClockTime",
    "IdentifiedPod",
    "Places",
    "PodClues",
    "PodCreation",
    "PodDirectory",
    "PodEvidence",
    "PodKeys",
    "SavedDirectory",
    "Sighting",
    "SpanSource",
    "cluster_of",
    "in_cluster",
    "most_bytes_of_keys",
    "read_clues",
    "sighting_in",
    "sighting_of",
    "sighting_of_request",
    "sound_place",
    "sound_uid",
]
