"""`string_attribute`: traces of which a resource or span has a text attribute with one of these values."""

from collections.abc import Callable

from pydantic import Field

from podtrail.config.mistakes import below
from podtrail.config.re2 import finder
from podtrail.config.types import WarningPath
from podtrail_processors.tail_sampling.policies.attribute import AttributeEvaluator, Lookup, keyless
from podtrail_processors.tail_sampling.policies.lenient import Int64, Texts
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig

_CACHE_SIZE = 128


class StringAttribute(AttributeEvaluator):
    """Says yes when the attribute matches somewhere; a value that is no text counts as empty.

    An empty text never matches on a span; on a resource a regular expression may match it, as in the Collector.
    """

    def __init__(self, key: str, matches: Callable[[str], bool], reason: str, inverted: bool) -> None:
        lookup = Lookup(
            key,
            lambda value: isinstance(value, str) and value != "" and matches(value),
            on_resource=lambda value: matches(value if isinstance(value, str) else ""),
        )
        super().__init__(reason, lookup, inverted)


class Config(PolicyConfig):
    """Settings of `string_attribute`."""

    key: str = Field("", description="The attribute, of a resource or a span.")
    values: Texts = Field((), description="The values, exact or as regular expressions (RE2) that are searched for.")
    enabled_regex_matching: bool = Field(False, description="Take `values` as regular expressions.")
    cache_max_size: Int64 = Field(0, description="How many answers of regular expressions are remembered; 0: 128.")
    invert_match: bool = Field(False, description="Keep the traces in which no value matches.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: a regular expression is none.
        """
        if self.enabled_regex_matching:
            with below("values"):
                matches = finder(self.values, self.cache_max_size if self.cache_max_size > 0 else _CACHE_SIZE)
        else:
            matches = frozenset(self.values).difference([""]).__contains__
        reason = f"{self.key} is {'none' if self.invert_match else 'one'} of {', '.join(self.values)}"
        return StringAttribute(self.key, matches, reason, self.invert_match)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        found = keyless(self.key)
        if not self.values:
            return [
                *found,
                (("values",), f"without values it keeps {'everything' if self.invert_match else 'nothing'}"),
            ]
        if "" in self.values and not self.enabled_regex_matching:
            found.append((("values", self.values.index("")), "has no effect: an empty text is never matched"))
        return found
