"""Workloads by name for `podtrail generate`: what a scheduler's days are like."""

from collections.abc import Mapping
from typing import Any, Final

_WEB: Final = {"name": "web", "weight": 80, "lifetime": "50s", "images": ["web:1"]}
_BATCH: Final = {
    "name": "batch",
    "weight": 20,
    "requests": {"cpu": "1", "memory": "2Gi"},
    "priority": -10,
    "lifetime": "95s",
}

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "quiet": {
        "arrival_rate": 0.2,
        "nodes": [{"name": "node", "count": 10, "zones": ["a", "b"]}],
        "pods": [_WEB, _BATCH],
        "faults": {},
    },
    "busy": {
        "arrival_rate": 20,
        "nodes": [{"name": "node", "count": 500, "zones": ["a", "b", "c"]}],
        "pods": [
            _WEB,
            _BATCH,
            {"name": "costly", "weight": 1, "lifetime": "1m"},
            {"name": "lost", "weight": 1, "lifetime": "1m", "node_selector": {"disk": "tape"}},
        ],
        "faults": {
            "slow_plugins": [
                {"name": "CostScorer", "extension_point": "permit", "takes": "1.2s", "kinds": ["costly"], "every": 2}
            ]
        },
    },
    "incident": {
        "arrival_rate": 2,
        "nodes": [
            {"name": "node", "count": 12, "zones": ["a", "b"]},
            {"name": "new", "count": 12, "joins_after": "5m", "cordoned_for": "2m"},
        ],
        "pods": [_WEB, _BATCH, {"name": "train", "weight": 5, "lifetime": "80s"}],
        "faults": {
            "slow_plugins": [
                {"name": "VolumeAttacher", "extension_point": "preBind", "takes": "40s", "kinds": ["train"]}
            ],
            "bind_refused": [{"kinds": ["web"], "every": 4, "times": 3}],
        },
    },
    "preempting": {
        "arrival_rate": 1,
        "nodes": [{"name": "node", "count": 8, "zones": ["a", "b"]}],
        "pods": [
            {**_BATCH, "weight": 60, "lifetime": "10m"},
            {
                "name": "critical",
                "weight": 40,
                "requests": {"cpu": "2", "memory": "2Gi"},
                "priority": 1000,
                "lifetime": "40s",
            },
        ],
        "faults": {},
    },
}
