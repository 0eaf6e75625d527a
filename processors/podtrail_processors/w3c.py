"""The W3C's `tracestate`: a list of vendors' keys and values (Trace Context, section 3.3)."""

import re
from collections.abc import Mapping

_MOST_MEMBERS = 32
_PLAIN = r"[a-z][a-z0-9_\-*/]{0,255}"
_TENANT = r"[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13}"
_VALUE = r"[ -+\--<>-~]{0,255}[!-+\--<>-~]"
_member = re.compile(rf"[ \t]*({_PLAIN}|{_TENANT})=({_VALUE})[ \t]*").fullmatch


def read_trace_state(header: bytes) -> Mapping[str, str] | None:
    """Return the keys and values of a trace state in their order, None when it breaks the rules.

    Empty members are passed over; a key that stands twice or more than 32 members are too many.
    """
    found: dict[str, str] = {}
    for text in header.decode("utf-8", "replace").split(","):
        if not text:
            continue
        member = _member(text)
        if member is None or member[1] in found or len(found) == _MOST_MEMBERS:
            return None
        found[member[1]] = member[2]
    return found
