"""Values as JSON, written as the Collector writes lists and maps into text."""

import json
from base64 import b64encode
from typing import Any

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def json_text(value: object) -> str:
    """Return JSON without blanks, maps in the order of their keys, bytes in base64."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=lambda _: None)
    return text.translate(_ESCAPED)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return b64encode(value).decode()
        case float() if value.is_integer() and abs(value) < 1e21:
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return value
