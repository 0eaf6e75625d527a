"""Options that are amounts: numbers, percentages and budgets."""

import re
from typing import Final

import click

from podtrail.backtest import DailyBudget, parse_budget

_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?) ?%")


class Percentage(click.ParamType):  # type: ignore[type-arg] # generic in the stubs of newer versions alone
    """A share, written in percent."""

    name = "percentage"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share: 0.05 for `5%`."""
        found = _PERCENT.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no percentage: write for example 5%", param, ctx)
        return float(found[1]) / 100


class Amount(click.ParamType):  # type: ignore[type-arg] # as above
    """A number within limits."""

    name = "number"

    def __init__(self, least: float, most: float, *, whole: bool = False) -> None:
        """Take what lies within limits: `whole` numbers only, if so said."""
        self._least, self._most = least, most
        self._whole = whole

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            number = int(str(value)) if self._whole else float(str(value))
        except ValueError:
            kind = "whole number" if self._whole else "number"
            self.fail(f"{value!r} is no {kind}: write for example {max(self._least, 10):g}", param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{value}: must be at least {self._least:,} and at most {self._most:,}", param, ctx)
        return number


PERCENTAGE: Final = Percentage()


def budget_of(_context: click.Context, _option: click.Parameter, value: str | None) -> DailyBudget | None:
    """Return the budget that an option names.

    Raises:
        BadParameter: it is none.
    """
    try:
        return None if value is None else parse_budget(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def share_of(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Refuse a share of nothing, or of more than all.

    Raises:
        BadParameter: it is one.
    """
    if value is not None and not 0 < value <= 1:
        raise click.BadParameter("must be above 0 % and at most 100 %")
    return value
