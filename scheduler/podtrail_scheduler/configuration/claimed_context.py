"""The trace context that a configuration file carries (KEP-5915)."""

import re
from collections.abc import Mapping

_LONGEST_HEAD = 8192
"""Characters of a file in which its comments are looked for."""
_CONTEXT = re.compile(r"#[ \t]*(tracing\.k8s\.io/(?:traceparent|tracestate)):[ \t]*(\S{1,512})[ \t]*")


def claimed_context(text: str) -> Mapping[str, str]:
    """The trace context of whoever wrote a configuration, by KEP-5915's annotation keys.

    A KubeSchedulerConfiguration has no annotations, and is decoded strictly. So it stands in a comment above the first
    field, where it comes and goes in one piece with the file: `# tracing.k8s.io/traceparent: 00-…-…-01`.
    """
    found: dict[str, str] = {}
    for line in text[:_LONGEST_HEAD].splitlines():
        if line.strip() and line.strip() != "---" and not line.startswith("#"):
            break
        if match := _CONTEXT.fullmatch(line):
            found.setdefault(match[1], match[2])
    return found
