"""What the sections of a workload are made of."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from podtrail_scheduler.objects.quantities import parse_resources

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,50}[a-z0-9])?$")]


def valid_resources(quantities: dict[str, str | int | float]) -> dict[str, str | int | float]:
    """The quantities as they are.

    Raises:
        ValueError: Kubernetes would not read one.
    """
    parse_resources(quantities)
    return quantities


Quantities = Annotated[dict[str, str | int | float], AfterValidator(valid_resources)]


class Section(BaseModel):
    """Part of a workload: no key is made up, nothing changes; a key without a value has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
