"""The configuration of `resource`: the Collector's keys."""

from pydantic import Field, model_validator

from podtrail.config.types import Model
from podtrail_processors.attribute_actions import AttributeAction


class Config(Model):
    """Settings of `resource`."""

    attributes: tuple[AttributeAction, ...] = Field(
        (), description="What is done with the attributes of each resource, in this order; at least one action."
    )

    @model_validator(mode="after")
    def _does_something(self) -> "Config":
        if not self.attributes:
            raise ValueError(
                "`attributes` must have at least one action, such as {key: ..., value: ..., action: upsert}"
            )
        return self
