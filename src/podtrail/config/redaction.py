"""Secrets taken out of a configuration, and out of text that may repeat them: for what leaves the machine.

Beyond what a component declares a secret this goes by sight (`podtrail.config.secret_keys`), and by origin: what comes
from an environment variable is shown by its name, what comes from a file (`${file:…}`) is not shown.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from podtrail.config.secret_keys import (
    REDACTED,
    credentials_in,
    forms_of,
    is_secret_key,
    parts_of,
    pattern_of,
    redacted,
    remember_secrets,
)
from podtrail.config.shape import Shape

_LEAST: Final = 6
"""Characters of a secret that is looked for in other text: shorter ones are in every word."""
_WELL_KNOWN: Final = re.compile(
    r"PATH|HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|LANG|LANGUAGE|TERM|TZ|HOSTNAME|SHLVL|_|LC_\w+|VIRTUAL_ENV|TMPDIR|PYTEST_\w+"
)
_ENVIRONMENT_LEAST: Final = 5


class Redaction:
    """Knows what must not be shown, and takes it out. Made for one configuration and the environment it was read in."""

    def __init__(self, environment: Mapping[str, str], from_files: Collection[str] = ()) -> None:
        """Start with what the environment holds, and with the values that `${file:…}` gave a configuration."""
        self._from_files = frozenset(from_files)
        self._named = {
            value: name
            for name, value in sorted(environment.items())
            if len(value) >= _ENVIRONMENT_LEAST and not _WELL_KNOWN.fullmatch(name)
        }
        self._used: set[str] = set()
        """What of the environment stands in the configuration."""
        self._secrets = {value for name, value in environment.items() if is_secret_key(name) and len(value) >= _LEAST}
        # A value around one of a file's is not looked for in other text.
        whole = [one for one in from_files if not any(other != one and other in one for other in from_files if other)]
        self._secrets.update(parts_of(whole))

    def learn(self, written: Any, model: type[BaseModel] | None = None) -> None:
        """Remember what must not be shown of a part of a configuration, so that `text` finds it elsewhere."""
        self._used.update(value for one in _strings(written) for value in self._named if value in one)
        self._secrets.update(secrets_in(written, model))

    def configuration(self, written: Any, model: type[BaseModel] | None = None) -> Any:
        """Return a part of a configuration (plain values, as the user wrote them) without secrets.

        Args:
            written: the values, references resolved.
            model: says what is declared a secret.
        """
        return self._redact(written, _shapes(model))

    def text(self, text: str) -> str:
        """Return text from a log or metric without what is known that must not be shown, and without users of URLs."""
        text = self._by_name(text, self._used)
        found = pattern_of({form for secret in self._secrets for form in forms_of(secret)})
        return redacted(text if found is None else found.sub(REDACTED, text))

    def _redact(self, value: Any, shapes: Sequence[Shape]) -> Any:
        match value:
            case None | bool():
                return value
            case Mapping():
                return _each_once((self._key(key), self._below(value, key, shapes)) for key in value)
            case list() | tuple():
                return [self._redact(one, _under(shapes, at)) for at, one in enumerate(value)]
            case _ if any(shape.is_secret for shape in shapes) or str(value) in self._from_files:
                return REDACTED
            case str():
                return self._told(value)
            case _:
                return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _below(self, mapping: Mapping[Any, Any], key: Any, shapes: Sequence[Shape]) -> Any:
        value = mapping[key]
        if is_secret_key(str(key)) and isinstance(value, str | int | float) and not isinstance(value, bool):
            return REDACTED
        if key == "value" and is_secret_key(str(mapping.get("key", mapping.get("name", "")))):
            return REDACTED
        return self._redact(value, _under(shapes, str(key)))

    def _told(self, text: str) -> str:
        return self.text(self._by_name(text, self._named))

    def _by_name(self, text: str, values: Iterable[str]) -> str:
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, f"[from the environment: {self._named[value]}]")
        return text


def _shapes(model: type[BaseModel] | None) -> Sequence[Shape]:
    return [Shape(model)] if model is not None else []


def _under(shapes: Sequence[Shape], key: str | int) -> list[Shape]:
    return [below for shape in shapes for below in shape.below(key)]


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _strings(inner)
        case list() | tuple():
            for inner in value:
                yield from _strings(inner)


def _secrets(value: Any, shapes: Sequence[Shape], key: str = "") -> Iterator[str]:
    match value:
        case Mapping():
            named = str(value.get("key", value.get("name", "")))
            for name, inner in value.items():
                yield from _secrets(inner, _under(shapes, str(name)), named if name == "value" else str(name))
        case list() | tuple():
            for at, inner in enumerate(value):
                yield from _secrets(inner, _under(shapes, at), key)
        case str():
            if any(shape.is_secret for shape in shapes) or is_secret_key(key):
                yield from parts_of((value,))
            for start, end in credentials_in(value):
                yield from parts_of((value[start:end],))
                yield value[start:end].partition(":")[2]


def secrets_in(written: Any, model: type[BaseModel] | None = None) -> Iterable[str]:
    """Return what must not be shown of a part of a configuration, and is long enough to be looked for elsewhere."""
    return {one for one in _secrets(written, _shapes(model)) if len(one) >= _LEAST}


def remember(written: Any, model: type[BaseModel] | None = None) -> None:
    """Have no log, error or answer of this process repeat the secrets of a part of a configuration."""
    remember_secrets(secrets_in(written, model))


def _each_once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return pairs as a mapping; of keys that are alike without their secrets the later have a number."""
    found: dict[Any, Any] = {}
    for key, value in pairs:
        number, name = 1, key
        while name in found:
            number += 1
            name = f"{key} {number}"
        found[name] = value
    return found
