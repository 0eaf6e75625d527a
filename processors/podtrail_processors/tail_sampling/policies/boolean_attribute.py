"""`boolean_attribute`: traces of which a resource or span has an attribute that is true (or false)."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail_processors.tail_sampling.policies.attribute import AttributeEvaluator, Lookup, keyless
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


class BooleanAttribute(AttributeEvaluator):
    """Says yes when the attribute has the value somewhere; a value of another type counts as false."""

    def __init__(self, key: str, value: bool, inverted: bool) -> None:
        reason = f"{key} is {'nowhere ' if inverted else ''}{str(value).lower()}"
        super().__init__(reason, Lookup(key, lambda found: (found is True) is value), inverted)


class Config(PolicyConfig):
    """Settings of `boolean_attribute`."""

    key: str = Field("", description="The attribute, of a resource or a span.")
    value: bool = Field(False, description="The value it must have.")
    invert_match: bool = Field(False, description="Keep the traces in which it has that value nowhere.")

    def create(self) -> Evaluator:
        """Return the policy."""
        return BooleanAttribute(self.key, self.value, self.invert_match)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return keyless(self.key)
