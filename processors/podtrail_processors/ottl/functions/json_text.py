"""Values as JSON, written as Go writes it: so the Collector turns into text what is no text."""

import json
import math
from base64 import b64encode
from decimal import Decimal

from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import kind_of

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def json_text(value: object) -> str:
    """Return JSON without blanks, maps in the order of their keys, bytes in base64.

    Raises:
        EvaluationError: JSON does not know a value, such as infinity.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return json_number(value)
        case str():
            return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)
        case bytes():
            return f'"{b64encode(value).decode()}"'
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            return f"{{{','.join(f'{json_text(key)}:{json_text(item)}' for key, item in sorted(value.items()))}}}"
    raise EvaluationError(f"{kind_of(value)} can't be made JSON")


def json_number(number: float) -> str:
    """Return a double with as many digits as it takes; with an exponent only when it is very small or large.

    Raises:
        EvaluationError: it is infinite or not a number.
    """
    if not math.isfinite(number):
        raise EvaluationError(f"{number} can't be made JSON")
    exact = Decimal(repr(number))
    if number and not 1e-6 <= abs(number) < 1e21:
        return format(exact.normalize(), "e")
    return format(exact, "f").removesuffix(".0")
