"""Runs the scheduler on a real cluster until it is told to end (SIGTERM, SIGINT) or cannot go on."""

import asyncio
import logging
import signal
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import aiohttp
from podtrail_kubernetes.errors import RequestFailed, RestConfigError
from podtrail_kubernetes.leader_election import LeadershipLost

from podtrail_scheduler.cluster.kubernetes.assembly import SchedulerPlan
from podtrail_scheduler.cluster.kubernetes.service import SchedulerSettings, run
from podtrail_scheduler.cluster.kubernetes.serving import Serving
from podtrail_scheduler.extenders import ExtenderChain, ExtenderError, HTTPExtender, WatchedManifests
from podtrail_scheduler.plugins.selection import Selection

from .logs import structured
from .options import Flags
from .preparation import prepare
from .reloading import ConfigurationFile

_log = logging.getLogger(__name__)


_KNOWN = (RestConfigError, RequestFailed, ExtenderError, OSError, ValueError)


class RunningFailed(Exception):
    """The scheduler could not start, or had to end; the text says why."""


def run_until_signalled(flags: Flags, prepared: Selection) -> None:
    """Returns when a signal has ended it.

    Raises:
        RunningFailed: it could not start, or had to end.
    """
    try:
        asyncio.run(_serve(flags, prepared))
    except LeadershipLost as lost:
        raise RunningFailed("leaderelection lost") from lost
    except _KNOWN as failed:
        raise RunningFailed(str(failed)) from failed
    except ExceptionGroup as failed:
        known, others = failed.split(_KNOWN)
        if known is None or others is not None:
            raise
        raise RunningFailed("; ".join(str(each) for each in _leaves(known))) from failed


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for each in group.exceptions:
        if isinstance(each, ExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


async def _serve(flags: Flags, prepared: Selection) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    again = None
    if flags.config is not None:
        again = ConfigurationFile(Path(flags.config), lambda: _plan(flags, prepare(flags)), flags.config_reload_period)
    loop.add_signal_handler(signal.SIGHUP, again.ask if again is not None else _nothing_to_reload)
    async with aiohttp.ClientSession() as session:
        manifests = WatchedManifests() if prepared.configuration.extenders else None
        extenders = None
        if manifests is not None:
            extenders = ExtenderChain(
                [HTTPExtender(each, session, manifests) for each in prepared.configuration.extenders]
            )
        plan = replace(_plan(flags, prepared), extenders=extenders, manifests=manifests)
        own = prepared.configuration.client_connection.kubeconfig
        settings = SchedulerSettings(
            plan,
            version("podtrail"),
            kubeconfig=Path(own or flags.kubeconfig or "") if own or flags.kubeconfig else None,
            master=flags.master,
            serving=Serving(flags.bind_address, flags.secure_port, flags.tls_cert_file, flags.tls_private_key_file),
            offered=again.offered() if again is not None else None,
            owns_process=True,
        )
        _log.info("%s", structured("Starting podtrail-scheduler", version=settings.version))
        await run(settings, stop, _started)


def _plan(flags: Flags, prepared: Selection) -> SchedulerPlan:
    return SchedulerPlan(
        prepared.configuration,
        prepared.profiles,
        prepared.makers,
        prepared.features,
        max_unschedulable=flags.pod_max_in_unschedulable_pods_duration,
        context=prepared.context,
    )


def _nothing_to_reload() -> None:
    _log.info("%s", structured("Nothing to reload: there is no --config"))


def _started(port: int) -> None:
    _log.info("%s", structured("Serving", port=port))
