"""Extenders: HTTP services that filter, score, preempt and bind for the scheduler (kube-scheduler's `extender/v1`)."""

from podtrail_scheduler.framework.extending import ExtenderError

from .chain import ExtenderChain
from .extender import Extender, FilterAnswer, Manifests, Victims
from .manifests import WatchedManifests

__all__ = ["Extender", "ExtenderChain", "ExtenderError", "FilterAnswer", "Manifests", "Victims", "WatchedManifests"]
