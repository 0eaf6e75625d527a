"""Whatever stands in a configuration, it is read or refused with a report; nothing else happens."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import read_settings
from tests.sizes import large

WHOLE: dict[str, Any] = {
    "receivers": {
        "otlp": {
            "protocols": {
                "grpc": {"endpoint": "localhost:0", "keepalive": {"server_parameters": {"time": "1s"}}},
                "http": {"endpoint": "localhost:0", "cors": {"allowed_origins": ["*"]}},
            }
        },
        "otlp_json_file": {"include": ["a.jsonl"]},
        "scheduler": {"workload": {"nodes": [{"name": "n", "count": 2}], "pods": [{"name": "p", "weight": 1}]}},
    },
    "processors": {
        "memory_limiter": {"check_interval": "1s", "limit_mib": 100},
        "tail_sampling": {
            "decision_wait": "10s",
            "policies": [
                {"name": "a", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
                {"name": "b", "type": "and", "and": {"and_sub_policy": [{"name": "c", "type": "always_sample"}]}},
                {"name": "d", "type": "target_rate", "target_rate": {"spans_per_second": 5, "key": ["k"]}},
                {"name": "e", "type": "python", "python": {"policy": "json:dumps", "args": {"indent": 1}}},
                {"name": "f", "type": "attempts", "attempts": {"min_attempts": 2, "forget_after": "1h"}},
            ],
            "shadow_policies": [{"name": "a", "type": "new_reason", "new_reason": {"max_kinds": 5}}],
            "decision_idle": "2s",
            "decision_memory": {"kept": 10, "not_kept": 10},
            "linked_traces": {"keep": True, "join_on": ["k"], "grace_period": "1s", "max_hops": 2},
            "stress_relief": {"mode": "auto", "errors_per_second": 1, "minimum_duration": "1s"},
        },
        "scheduling_metrics": {"max_series": 5},
        "filter": {"traces": {"span": ['name == "a"']}},
        "filter/other": {"trace_conditions": [{"context": "span", "conditions": ['name == "a"']}]},
        "attributes": {
            "actions": [{"key": "a", "action": "insert", "value": 1}],
            "include": {"match_type": "regexp", "attributes": [{"key": "a", "value": "b"}]},
        },
        "resource": {"attributes": [{"key": "a", "action": "insert", "value": 1}]},
        "link_stitching": {"ttl": "1m"},
        "batch": {"timeout": "1s"},
    },
    "exporters": {
        "otlp": {"endpoint": "localhost:1", "headers": {"a": "b"}, "tls": {"insecure": True}},
        "otlphttp": {"endpoint": "http://localhost:1", "sending_queue": {"queue_size": 1}},
        "file": {"path": "kept.jsonl", "rotation": {"max_megabytes": 1}},
        "debug": {"verbosity": "basic"},
    },
    "extensions": {"health_check": {"endpoint": "localhost:0"}, "viewer": {"max_mib": 1}},
    "service": {
        "extensions": ["health_check", "viewer"],
        "telemetry": {"metrics": {"address": "localhost:0"}, "logs": {"level": "info"}},
        "pipelines": {
            "traces": {
                "receivers": ["otlp", "otlp_json_file", "scheduler"],
                "processors": [
                    *("memory_limiter", "scheduling_metrics", "filter", "filter/other", "attributes"),
                    *("resource", "tail_sampling", "link_stitching", "batch"),
                ],
                "exporters": ["otlp", "otlphttp", "file", "debug"],
            }
        },
    },
}

TEXTS = st.sampled_from(["", "x", "1s", "-1s", "localhost:0", "http://x", "a/b", "${env:X}", "\x00", "name", "type"])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def paths(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of everything in a value."""
    below: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    return [above, *(path for key, inner in below for path in paths(inner, (*above, key)))]


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return the value with what stands at a path exchanged."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {k: changed(v, rest, new) if k == key else v for k, v in value.items()}
    return [changed(v, rest, new) if at == key else v for at, v in enumerate(value)]


def test_the_configuration_is_right_as_it_is() -> None:
    assert read_settings(Document.from_mapping(WHOLE, environ={})).pipelines[0].id == "traces"


@settings(max_examples=large(100, 400), deadline=None)
@given(st.sampled_from(paths(WHOLE)[1:]), ANYTHING)
def test_a_configuration_with_anything_anywhere_is_read_or_refused(path: tuple[str | int, ...], new: Any) -> None:
    with contextlib.suppress(ConfigError):
        read_settings(Document.from_mapping(changed(WHOLE, path, new), environ={"X": "7"}))


FREE = {
    ("exporters", "otlp", "headers"),
    ("processors", "tail_sampling", "policies", 3, "python", "args"),
}
"""Maps whose keys are the user's."""
KEYED = dict.fromkeys(path[:-1] for path in paths(WHOLE) if path and isinstance(path[-1], str))
CLOSED = [path for path in KEYED if path not in FREE]


@pytest.mark.parametrize("path", CLOSED, ids=lambda path: "::".join(map(str, path)))
def test_an_unknown_key_is_refused_wherever_it_stands(path: tuple[str | int, ...]) -> None:
    above: Any = WHOLE
    for key in path:
        above = above[key]

    with pytest.raises(ConfigError, match="unknwon"):
        read_settings(Document.from_mapping(changed(WHOLE, path, {**above, "unknwon": 1}), environ={}))
