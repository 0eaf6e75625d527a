"""Extenders: HTTP services that filter, score, preempt and bind for the scheduler (kube-scheduler's `extender/v1`).

The scheduling cycle awaits the functions of `chain`, each after or before the plugins of a point:

- `filter_with` behind Filter, with the nodes that the plugins left,
- `prioritize_with` beside Score: what it returns is added to the weighted sum of the plugins,
- `preempt_with` in preemption, with the candidates and their victims, before one is picked,
- `bind_with` before the Bind plugins, which run only when it returns False.
"""

from .chain import bind_with, filter_with, preempt_with, prioritize_with
from .extender import Extender, ExtenderError, FilterAnswer, Manifests, Victims, extenders_of

__all__ = [
    "Extender",
    "ExtenderError",
    "FilterAnswer",
    "Manifests",
    "Victims",
    "bind_with",
    "extenders_of",
    "filter_with",
    "preempt_with",
    "prioritize_with",
]
