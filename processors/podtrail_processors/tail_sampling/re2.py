"""placeholder"""

import re


def compile_re2(p: str) -> re.Pattern[str]:
    try:
        return re.compile(p)
    except re.error as e:
        raise ValueError(str(e)) from None
