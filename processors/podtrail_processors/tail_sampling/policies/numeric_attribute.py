"""`numeric_attribute`: traces of which a resource or span has an integer attribute within bounds."""

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail_processors.tail_sampling.policies.attribute import AttributeEvaluator, Lookup, keyless
from podtrail_processors.tail_sampling.policies.lenient import Int64
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig

_LEAST, _MOST = -(2**63), 2**63 - 1


class NumericAttribute(AttributeEvaluator):
    """Says yes when the attribute lies between the bounds somewhere; a value that is no integer counts as 0."""

    def __init__(self, key: str, least: int, most: int, inverted: bool) -> None:
        bounds = [f"at least {least}"] * (least != _LEAST) + [f"at most {most}"] * (most != _MOST)
        reason = f"{key} is {'nowhere ' if inverted else ''}{' and '.join(bounds)}"
        lookup = Lookup(key, lambda value: least <= (value if type(value) is int else 0) <= most)
        super().__init__(reason, lookup, inverted)


class Config(PolicyConfig):
    """Settings of `numeric_attribute`. A bound of 0 counts as absent, as in the Collector."""

    key: str = Field("", description="The attribute, of a resource or a span.")
    min_value: Int64 = Field(0, description="The least value, inclusive; 0: no bound.")
    max_value: Int64 = Field(0, description="The largest value, inclusive; 0: no bound.")
    invert_match: bool = Field(False, description="Keep the traces in which it lies within the bounds nowhere.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no bound is given.
        """
        if not self.min_value and not self.max_value:
            raise ValueError("min_value or max_value must be given, and not as 0")
        return NumericAttribute(self.key, self.min_value or _LEAST, self.max_value or _MOST, self.invert_match)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        given = self.model_fields_set & {"min_value", "max_value"}
        found = keyless(self.key)
        found += [((key,), "a bound of 0 counts as none") for key in sorted(given) if not getattr(self, key)]
        if self.max_value and self.min_value and self.max_value < self.min_value:
            text = f"is less than min_value: it keeps {'everything' if self.invert_match else 'nothing'}"
            found.append((("max_value",), text))
        return found
