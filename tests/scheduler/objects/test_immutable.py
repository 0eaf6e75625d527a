"""Nothing within an object can be changed, at any depth; copies are as changeable and as equal as ever."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.pod import Volume

SOURCE: dict[str, Any] = {"monitors": ["a", {"port": 1}], "secretRef": {"name": "s"}}


@pytest.mark.parametrize(
    "change",
    [
        lambda source: source.clear(),
        lambda source: source.update(kind="x"),
        lambda source: source.__ior__({"a": 1}),
        lambda source: source.pop("monitors"),
        lambda source: source["secretRef"].setdefault("other", 1),
        lambda source: source["monitors"].append("b"),
        lambda source: source["monitors"].sort(),
        lambda source: source["monitors"].__setitem__(0, "b"),
        lambda source: source["monitors"][1].clear(),
    ],
)
def test_a_change_is_refused(change: Callable[[Any], Any]) -> None:
    volume = Volume("v", source=copy.deepcopy(SOURCE))
    with pytest.raises(TypeError, match="can't be changed"):
        change(volume.source)
    assert volume.source == SOURCE


@pytest.mark.parametrize("made", [dict, copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_is_equal(made: Callable[[Any], Any]) -> None:
    source = Volume("v", source=copy.deepcopy(SOURCE)).source
    assert made(source) == source == SOURCE
    assert json.loads(json.dumps(source)) == SOURCE


def test_what_a_changed_pod_is_given_is_its_own() -> None:
    labels = {"a": "b"}
    pod = Pod("p").changed(labels=labels)
    labels["a"] = "c"
    assert pod.labels == {"a": "b"}
