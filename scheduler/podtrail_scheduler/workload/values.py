"""What the sections of a workload are made of."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from podtrail_scheduler.quantities import parse_resources

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,50}[a-z0-9])?$")]


def valid_resources(quantities: dict[str, str | int | float]) -> dict[str, str | int | float]:
    parse_resources(quantities)
    return quantities


Quantities = Annotated[dict[str, str | int | float], AfterValidator(valid_resources)]


class Section(BaseModel):
    """Part of a workload: no key is made up, nothing changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
