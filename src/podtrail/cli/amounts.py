"""Options that are amounts: percentages and budgets."""

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
