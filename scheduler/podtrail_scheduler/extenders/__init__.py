"""Extenders: HTTP services that filter, score, preempt and bind for the scheduler (kube-scheduler's `extender/v1`)."""

from podtrail_scheduler.framework.extending import ExtenderError, Victims

from .chain import ExtenderChain
from .extender import FilterAnswer, HTTPExtender
from .manifests import Manifests, WatchedManifests

__all__ = ["ExtenderChain", "ExtenderError", "FilterAnswer", "HTTPExtender", "Manifests", "Victims", "WatchedManifests"]
