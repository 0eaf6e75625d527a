"""The values of flags as Go's pflag reads them, with the errors it prints."""

import json
from typing import Any

import click
from podtrail_instrumentation.steps import go_duration

from podtrail_scheduler.configuration.go_duration import parse_go_duration

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class _GoType(click.ParamType):  # type: ignore[type-arg] # generic in newer versions alone
    def _refuse(self, value: object, reason: str, parameter: click.Parameter | None) -> None:
        names = ", ".join(parameter.opts) if parameter is not None else ""
        raise click.UsageError(f"invalid argument {json.dumps(str(value))} for {json.dumps(names)} flag: {reason}")


class GoBool(_GoType):
    """`--flag`, `--flag=true` or `--flag=false`."""

    name = "bool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The value as a bool; a bool is taken as it is."""
        text = str(value)
        if text not in _TRUE | _FALSE:
            self._refuse(value, f"strconv.ParseBool: parsing {json.dumps(text)}: invalid syntax", param)
        return text in _TRUE


class GoDuration(_GoType):
    """A flag such as `1h30m`, as nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The duration in nanoseconds; an integer, such as a default, is taken as nanoseconds already."""
        if isinstance(value, int):
            return value
        try:
            return parse_go_duration(str(value))
        except ValueError as error:
            self._refuse(value, str(error), param)


class Verbosity(_GoType):
    """klog's level, also with the equals sign that Go allows behind a short flag (`-v=2`)."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """From 0 up."""
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self._refuse(text, f"strconv.ParseUint: parsing {json.dumps(text)}: invalid syntax", param)
        return int(text)


def shown(value: object, kind: object) -> str:
    """A flag's value as it was written, nothing for one that was not; `kind` is the flag's type."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(kind, GoDuration) and isinstance(value, int):
        return go_duration(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
