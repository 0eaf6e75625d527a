"""The part of the Common Expression Language that device selectors are written in.

There: literals, lists, all operators of numbers, strings, booleans and lists, `in`, the conditional, fields, indexes,
optional ones (`.?`, `[?`, `orValue`, `hasValue`), the macros has, all, exists, exists_one, filter, map and cel.bind,
conversions, the string functions, and Kubernetes' quantities and semantic versions. Not there: bytes, unsigned
numbers, map and message literals, timestamps and durations, costs.
"""

from .parsing import parse
from .values import CelError

__all__ = ["CelError", "parse"]
