"""Configurations that between them have every processor, every policy and every memory in use, small ones mostly."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.replay.replayer import read_config

ROOT = Path(__file__).parents[2]

FAILED = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
SLOW = {"name": "slow", "type": "latency", "latency": {"threshold_ms": 800}}
SOME = {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 20}}
ALL = {"name": "all", "type": "always_sample"}
RATE = {"name": "rate", "type": "rate_limiting", "rate_limiting": {"spans_per_second": 4, "burst_capacity": 12}}
BYTES = {"name": "bytes", "type": "bytes_limiting", "bytes_limiting": {"bytes_per_second": 900}}
COMPOSITE = {
    "name": "budget",
    "type": "composite",
    "composite": {
        "max_total_spans_per_second": 10,
        "composite_sub_policy": [FAILED, SOME],
        "rate_allocation": [{"policy": "failed", "percent": 70}, {"policy": "some", "percent": 30}],
    },
}
TARGET = {
    "name": "target",
    "type": "target_rate",
    "target_rate": {"spans_per_second": 5, "key": ["scheduler.result", "service.name"], "adjustment_interval": "10s"},
}
QUANTILE = {"name": "outlier", "type": "latency_quantile", "latency_quantile": {"quantile": 0.8, "min_attempts": 5}}
NEW = {"name": "new", "type": "new_reason", "new_reason": {"forget_after": "30s"}}
TRIES = {"name": "tries", "type": "attempts", "attempts": {"min_attempts": 3}}
RECOVERED = {"name": "recovered", "type": "recovered"}
AND = {"name": "both", "type": "and", "and": {"and_sub_policy": [FAILED, RATE]}}
NOT = {"name": "otherwise", "type": "not", "not": {"not_sub_policy": QUANTILE}}
DROP = {
    "name": "drop",
    "type": "drop",
    "drop": {
        "drop_sub_policy": [
            {"name": "c", "type": "string_attribute", "string_attribute": {"key": "http.route", "values": ["/c"]}}
        ]
    },
}
LEARNERS: list[Mapping[str, Any]] = [NEW, RECOVERED, TRIES, QUANTILE]
CACHES = {
    "decision_cache": {"sampled_cache_size": 20, "non_sampled_cache_size": 30},
    "decision_memory": {"kept": 1000, "not_kept": 1000},
}


def sampler(*policies: Mapping[str, Any], **settings: Any) -> Mapping[str, Any]:
    return {"tail_sampling": {"decision_wait": "10s", "num_traces": 60, "policies": policies, **settings}}


class Tried(NamedTuple):
    """Processors in their order, and the gates that are on."""

    processors: Mapping[str, Any]
    gates: frozenset[str] = frozenset()

    def settings(self) -> Settings:
        pipelines = {"traces": {"receivers": ["otlp"], "processors": [*self.processors], "exporters": ["debug"]}}
        return read_settings(
            read_config(
                {
                    "receivers": {"otlp": {"protocols": {"grpc": None}}},
                    "processors": self.processors,
                    "exporters": {"debug": None},
                    "service": {"pipelines": pipelines},
                }
            ),
            self.gates,
        )


LINKED = {"keep": True, "grace_period": "30s", "join_on": ["k8s.pod.uid"]}
BY_TRACE_STATE = frozenset({USE_TRACE_STATE})

CONFIGURATIONS: Mapping[str, Tried] = {
    "a sampler that waits": Tried(sampler(FAILED, SLOW, SOME)),
    "decisions are remembered": Tried(sampler(FAILED, SOME, **CACHES, rescue_late_errors=True)),
    "time, room and size": Tried(
        sampler(
            FAILED,
            SOME,
            decision_wait_after_root_received="2s",
            decision_idle="3s",
            maximum_held_mib=1,
            maximum_held_trace_kib=1,
            maximum_trace_size_bytes=6000,
            num_traces=12,
        )
    ),
    "senders wait while all is undecided": Tried(sampler(FAILED, block_on_overflow=True, num_traces=6)),
    "budgets": Tried(sampler(RATE, BYTES, COMPOSITE, DROP, AND)),
    "budgets by trace state": Tried(sampler(RATE, BYTES, COMPOSITE, SOME, record_reason=True), BY_TRACE_STATE),
    "a target rate": Tried(sampler(TARGET, **CACHES)),
    "a target rate by trace state": Tried(sampler(TARGET), BY_TRACE_STATE),
    "policies that learn": Tried(sampler(*LEARNERS, NOT, record_reason=True)),
    "shadows": Tried(
        sampler(
            FAILED,
            *({**policy, "shadow": True} for policy in (QUANTILE, RATE, SOME)),
            shadow_policies=[TARGET, COMPOSITE, NEW],
        )
    ),
    "stress": Tried(
        sampler(
            FAILED,
            **CACHES,
            stress_relief={"mode": "always", "sampling_percentage": 30, "errors_per_second": 1},
            rescue_late_errors=True,
        )
    ),
    "stress now and then": Tried(
        sampler(
            SOME,
            maximum_held_mib=1,
            stress_relief={
                "mode": "auto",
                "activate_at_percentage": 4,
                "deactivate_at_percentage": 3,
                "minimum_duration": "2s",
                "errors_per_second": 1,
            },
        )
    ),
    "shards": Tried(sampler(FAILED, RATE, TARGET, num_shards=3, **CACHES)),
    "spans judged as they come": Tried(sampler(DROP, FAILED, SLOW, sampling_strategy="span-ingest", **CACHES)),
    "linked traces": Tried(sampler(FAILED, RECOVERED, linked_traces=LINKED, **CACHES)),
    "linked traces of whole Pods": Tried(
        sampler(FAILED, SOME, linked_traces={**LINKED, "whole_pods": True, "max_linked_traces": 5, "max_hops": 3})
    ),
    "few linked traces": Tried(
        sampler(FAILED, linked_traces={**LINKED, "grace_max_bytes": 60_000, "max_remembered": 40}, **CACHES)
    ),
    "a dry run": Tried(sampler(FAILED, dry_run=True)),
    "links": Tried({**sampler(FAILED, SOME), "link_stitching": {}, "batch": {"timeout": "4s"}}),
    "links in little room": Tried(
        {
            "link_stitching": {
                "max_pods": 5,
                "max_attempts": 12,
                "max_attempts_per_pod": 3,
                "max_traces": 30,
                "max_waiting_links": 6,
                "ttl": "40s",
                "reorder_wait": "20s",
            }
        }
    ),
    "lives": Tried(
        {
            **sampler(FAILED, SOME),
            "link_stitching": {"mode": "lifecycle", "lifecycle": {"timeout": "60s", "wait": "5s"}, "ttl": "90s"},
        }
    ),
    "merged lives": Tried(
        {
            **sampler(FAILED, SOME),
            "link_stitching": {"mode": "merge", "lifecycle": {"timeout": "60s", "wait": "5s"}, "ttl": "90s"},
        }
    ),
    "batches": Tried({"batch": {"timeout": "30s", "send_batch_size": 40, "send_batch_max_size": 50}}),
    "nothing is held": Tried(
        {
            "memory_limiter": {"check_interval": "1s", "limit_mib": 4000},
            "attributes": {"actions": [{"key": "vip", "action": "delete"}]},
            "resource": {"attributes": [{"key": "k8s.cluster.name", "value": "eu", "action": "insert"}]},
            "filter": {"traces": {"span": ['attributes["http.route"] == "/b"']}},
            "probabilistic_sampler": {"sampling_percentage": 60},
            "scheduling_metrics": {},
        }
    ),
}


def shipped() -> Sequence[Path]:
    """The configurations that the project ships."""
    found = [*(ROOT / "examples").glob("*.yaml"), *(ROOT / "examples/policies").glob("*.yaml")]
    return [ROOT / "pipeline.yaml", *sorted(path for path in found if not path.stem.endswith("_test"))]
