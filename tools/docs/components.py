"""Puts the code of examples/components/ into the pages of docs/components/, between their marks."""

import re
from pathlib import Path

_MARKED = re.compile(r"(<!-- (example_components/\w+\.py) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_code(page: str, examples: Path) -> str:
    """Return a page with the files that its marks name; `examples` is the folder that they count from."""

    def marked(found: re.Match[str]) -> str:
        code = (examples / found[2]).read_text("utf-8")
        return f"{found[1]}\n```python\n{code}```\n\n{found[3]}"

    return _MARKED.sub(marked, page)
