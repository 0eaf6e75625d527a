"""Which Pod a span is about: the one extractor of all processors that bring together what belongs to a Pod.

Schedulers, kubelets and applications say a Pod's uid. The API server's spans never do: they have its namespace and
name in the path of the request or in the key in etcd, and an audit id by which the spans of one request go together.
Which of several Pods of one name is meant follows from the time.
"""

from podtrail_processors.pod_identity.places import CLOCK_SLACK, Places
from podtrail_processors.pod_identity.sighting import (
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
    "AUDIT_ID",
    "CLOCK_SLACK",
    "CREATE",
    "PLACE_MARK",
    "PODS_MARK",
    "POD_UID",
    "READ_KEYS",
    "Places",
    "Sighting",
    "sighting_in",
    "sighting_of",
    "sound_place",
    "sound_uid",
]
