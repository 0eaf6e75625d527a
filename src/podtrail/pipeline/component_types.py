"""From the id of a component to its type, with what may have been meant where there is none."""

from collections.abc import Mapping
from typing import Final

from podtrail.component import Factory, Kind, registry
from podtrail.config.collector_components import collector_component, is_harmless
from podtrail.config.ids import parse_id
from podtrail.config.problem import did_you_mean
from podtrail.config.validation import Validator

SECTIONS: Final[Mapping[str, Kind]] = {
    "receivers": "receiver",
    "processors": "processor",
    "exporters": "exporter",
    "extensions": "extension",
}
"""The sections of a configuration that have components, and of which kind."""


def left_out(check: Validator, section: str, text: str) -> bool:
    """Tell whether a component of the Collector's is accepted and left out, and warn of it."""
    try:
        type_name = parse_id(text).type
    except ValueError:
        return False
    kind = SECTIONS[section]
    known = collector_component(kind, type_name)
    if known is None or not is_harmless(kind, type_name) or registry.find(kind, type_name) is not None:
        return False
    check.warn((section, text), f"{known.message}: it is left out", known.hint)
    return True


def find_type(check: Validator, section: str, text: str) -> Factory | None:
    """Return the type of a component; None when there is none, which is a problem.

    Args:
        check: gathers problems.
        section: where it stands.
        text: its id, as the user wrote it.
    """
    path = (section, text)
    kind = SECTIONS[section]
    try:
        type_name = parse_id(text).type
    except ValueError as error:
        check.problem(path, str(error))
        return None
    factory = registry.find(kind, type_name)
    if factory is None and (known := collector_component(kind, type_name)) is not None:
        check.problem(path, known.message, known.hint)
        return None
    if factory is None:
        hint = did_you_mean(type_name, registry.types(kind), f"{section} there are")
        section_of = next((of for of, other in SECTIONS.items() if type_name in registry.types(other)), None)
        if section_of is not None:
            hint = f"{type_name} belongs under {section_of}"
        elif registry.broken():
            hint += "; those of other distributions can't all be used: podtrail components says why"
        check.problem(path, f"unknown {kind} type {type_name!r}", hint)
        return None
    return factory
