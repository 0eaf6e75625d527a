"""The profiles that a simulated scheduler has: read, checked and tried before anything runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podtrail_scheduler import Simulation
from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import load, read
from podtrail_scheduler.configuration.types import API_VERSION, KIND
from podtrail_scheduler.plugins.registry import Make, PluginNotFoundError, available, without_points
from podtrail_scheduler.plugins.selection import Selection, select
from podtrail_scheduler.workload import Workload

from podtrail.config.config_folder import file_beside, import_beside
from podtrail.config.mistakes import Mistake, Mistakes

_MISSING = "put its module beside the configuration file, its directory into PYTHONPATH, or install it"
_EXTENDERS = "a simulation asks no extenders; remove them, or stand a plugin in for them"

Given = str | Mapping[str, Any] | None


def selected(config: Given, plugins: Mapping[str, str], workload: Workload) -> Selection:
    """Return the profiles of a KubeSchedulerConfiguration, which is the path of a file or the mapping itself.

    None: the default profile, with all of `plugins` (module:Class by name) at every point they serve.

    Raises:
        Mistakes: What is wrong, below the receiver's keys `config`, `plugins` and `workload`.
    """
    makers = _makers(plugins)
    features = FeatureGates()
    try:
        if isinstance(config, str):
            configuration, source = load(file_beside(config), features)
        else:
            enabled = [{"name": name} for name in plugins]
            given = {"profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}]} if config is None else config
            document = json.dumps({"apiVersion": API_VERSION, "kind": KIND, **given}, default=str)
            configuration, source = read(document, "", features)
        selection = select(configuration, source, features, lambda: makers, lambda _: None)
    except ConfigurationError as error:
        raise Mistakes(_told(error, config)) from None
    if configuration.extenders:
        raise Mistakes([Mistake(("config", "extenders"), _EXTENDERS)])
    _check_names([profile.scheduler_name for profile in selection.profiles], workload)
    try:
        Simulation(workload, selection=selection)
    except ValueError as error:
        raise Mistakes([Mistake(("plugins" if config is None else "config",), str(error))]) from None
    return selection


def unused(selection: Selection, plugins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the plugins that are never asked, and why."""
    used = {name for profile in selection.profiles for name in profile.plugins}
    for name in plugins:
        why = without_points(selection.makers[name]) or ("" if name in used else "no profile enables it")
        if why:
            yield name, why


def _makers(plugins: Mapping[str, str]) -> Mapping[str, Make]:
    wrong = []
    for name, reference in plugins.items():
        try:
            available({name: reference}, import_beside)
        except PluginNotFoundError as error:
            hint = f"; {_MISSING}" if isinstance(error.__cause__, ModuleNotFoundError) else ""
            wrong.append(Mistake(("plugins", name), f"{error}{hint}"))
    if wrong:
        raise Mistakes(wrong)
    return available(plugins, import_beside)


def _told(error: ConfigurationError, config: Given) -> Sequence[Mistake]:
    """Return what is wrong: at its own key if the configuration stands here, with its place in a file of its own."""
    if isinstance(config, str):
        return [Mistake(("config",), problem.located(error.file)) for problem in error.problems]
    return [Mistake(("config", *_keys(problem.path)), _worded(problem)) for problem in error.problems]


def _worded(problem: ConfigurationProblem) -> str:
    remedy = problem.remedy.replace("--plugin ", "name it under plugins: ").replace("=MODULE:CLASS", ": MODULE:CLASS")
    return f"{problem.message}; {remedy}" if remedy else problem.message


def _keys(path: str) -> Sequence[str | int]:
    """Return the keys and indexes of a path like `profiles[0].plugins.score.enabled[1]`."""
    parts = path.replace("]", "").replace("[", ".#").split(".") if path else []
    return [int(part[1:]) if part.startswith("#") else part for part in parts]


def _check_names(names: Sequence[str], workload: Workload) -> None:
    """Refuse Pods of the workload that no profile would ever schedule; those of files may be meant for others."""
    there = f"the profiles of config are {', '.join(names)}: call one so"
    wrong = [
        Mistake(
            ("workload", "pods", at, "scheduler_name"),
            f"pods::{at} ({kind.name}) asks for {kind.scheduler_name!r}; {there}",
        )
        for at, kind in enumerate(workload.pods)
        if kind.scheduler_name not in names
    ]
    pending = {pod.scheduler_name for pod in workload.written.pending}
    if pending and pending.isdisjoint(names):
        asked = ", ".join(sorted(pending))
        message = f"all Pods of objects ask for {asked}; {there}"
        wrong.append(Mistake(("workload", "objects"), message))
    if wrong:
        raise Mistakes(wrong)
