"""Values that a shell is offered for an option or argument: components, and what a running page knows.

A page is asked for a second at most, and nothing is said where none answers. A shell acts on what it is offered: names
with any other than the characters of Kubernetes' names are left out.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from podtrail.cli.running_page import DEFAULT_ENDPOINT, NobodyThere, get_json
from podtrail.component import registry
from podtrail.component.factory import Kind

_SECONDS: Final = 1.0
_HARMLESS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,253}")
_SECTIONS: Final[Mapping[str, Kind]] = {
    "receivers": "receiver",
    "processors": "processor",
    "exporters": "exporter",
    "extensions": "extension",
}
_API: Final = "/api/v1/"

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def pods(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return Pods by name, or by namespace and name once that is typed."""
    name = typed.rpartition("/")[2]
    told = _ask(context, f"{_API}pods", {"q": name, "state": "all"} if name else {"state": "all"})
    listed = [*_rows(told, "pods"), *_rows(told, "elsewhere")]
    full = [f"{one.get('namespace', '')}/{one.get('name', '')}" for one in listed]
    names = [str(one.get("name", "")) for one in listed]
    return _offered([*full, *names] if not typed else [*names, *full], typed)


def namespaces(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return namespaces of Pods."""
    return _suggested(context, "ns", typed)


def nodes(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return nodes that Pods tell of."""
    return _suggested(context, "node", typed)


def plugins(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return plugins that say no."""
    return _suggested(context, "plugin", typed)


def policies(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return policies of samplers."""
    samplers = _rows(_ask(context, f"{_API}policies", {}), "samplers")
    return _offered((str(one.get("policy", "")) for each in samplers for one in _rows(each, "policies")), typed)


def assignments(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return beginnings of `--set`: sections, components, and the keys of one."""
    section, dot, rest = typed.partition(".")
    if not dot:
        return [f"{one}." for one in (*_SECTIONS, "service") if one.startswith(section)]
    kind = _SECTIONS.get(section)
    if kind is None:
        return []
    component, dot, key = rest.partition(".")
    if not dot:
        return [f"{section}.{one}." for one in registry.types(kind) if one.startswith(component)]
    factory = registry.find(kind, component.partition("/")[0])
    keys = factory.Config.model_fields if factory else {}
    return [f"{section}.{component}.{one}=" for one in keys if one.startswith(key)]


def _suggested(context: click.Context, key: str, typed: str) -> list[str]:
    told = _ask(context, f"{_API}suggest", {"q": f"{key}:{typed}"})
    texts = (str(one.get("text", "")) for one in _rows(told, "suggestions"))
    return _offered((each.removeprefix(f"{key}:") for each in texts), typed)


def _offered(names: Iterable[str], typed: str) -> list[str]:
    """Return what may be offered: names go on from what was typed, capitals left out of account as `why` does."""
    begun = typed.casefold()
    return [one for one in dict.fromkeys(names) if one.casefold().startswith(begun) and _HARMLESS.fullmatch(one)]


def _ask(context: click.Context, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page answers within a second, nothing where it does not."""
    endpoint = str(context.params.get("endpoint") or DEFAULT_ENDPOINT)
    told: dict[str, Any] = {}

    def ask() -> None:
        try:
            told.update(get_json(endpoint, path, query, _SECONDS))
        except NobodyThere:
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_SECONDS)  # a page that answers drop by drop is not waited for
    return dict(told)


def _rows(told: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = told.get(name)
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
