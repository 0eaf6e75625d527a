"""The functions that conditions may call, under the names and with the parameters that the Collector gives them."""

from collections.abc import Mapping

from podtrail_processors.ottl.functions import checks, conversions, encodings, lists, parsing, texts, times
from podtrail_processors.ottl.functions.parameters import Function

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for module in (checks, conversions, encodings, lists, parsing, texts, times)
    for function in module.FUNCTIONS
}
"""By name. `IsRootSpan`, which asks the span itself, and `Now` are not among them."""
