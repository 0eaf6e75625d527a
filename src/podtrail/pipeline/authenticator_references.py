"""Keys that name an authenticator: it must be an extension that is configured, of the right kind, and is started."""

from collections.abc import Collection, Mapping
from typing import Any

from podtrail.component import AuthenticatorConfig
from podtrail.config.authentication import AuthSettings, ServerAuthSettings, references
from podtrail.config.problem import Path, did_you_mean
from podtrail.config.validation import Validator


def check_authenticators(
    check: Validator,
    sections: Mapping[str, Mapping[str, Any]],
    used: Mapping[str, Collection[str]],
    started: Collection[str],
) -> None:
    """Check what the components of a configuration say of authenticators; problems gather in the validator.

    Args:
        check: gathers problems.
        sections: components by section and id, None for one that is wrong.
        used: by section, the ids of those that will run.
        started: ids of the extensions that will.
    """
    for section, ids in used.items():
        for id in sorted(ids):
            found = sections[section].get(id)
            if found is None:
                continue
            for below, settings in references(found.config):
                _check(check, sections["extensions"], started, (section, id, *below), settings)


def _check(
    check: Validator, extensions: Mapping[str, Any], started: Collection[str], path: Path, settings: AuthSettings
) -> None:
    id = settings.authenticator
    side = "server" if isinstance(settings, ServerAuthSettings) else "client"
    fitting = [name for name, found in extensions.items() if found is not None and _is_for(side, found.config)]
    if id not in extensions:
        hint = did_you_mean(id, fitting, "authenticators configured") if fitting else "configure it under extensions"
        check.problem(path, f'failed to resolve authenticator "{id}": authenticator not found', hint, value=True)
    elif (found := extensions[id]) is not None and not _is_for(side, found.config):
        hint = _remedy(side, found.config)
        check.problem(path, f"requested authenticator is not a {side} authenticator", hint, value=True)
    elif id not in started:
        check.problem(path, f'references extension "{id}" which is not started', "list it in service::extensions")


def _is_for(side: str, config: Any) -> bool:
    if not isinstance(config, AuthenticatorConfig):
        return False
    return config.for_servers if side == "server" else config.for_clients


def _remedy(side: str, config: Any) -> str:
    if not isinstance(config, AuthenticatorConfig):
        return "name a basicauth or a bearertokenauth"
    return f"configure a second one for the {side} side, as basicauth/{side}, and name that"
