"""Text of other encodings as UTF-8: Windows writes UTF-16, or a byte order mark in front of UTF-8."""

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Read as the length of a frame, each is more than a request may have."""
_UNMARKED: Final = re.compile(rb"[{\[]\0[\s\"{\[]\0")


class Utf8Reader:
    """Passes on the bytes of a file, in UTF-8 if its first bytes are those of another encoding."""

    def __init__(self, head: bytes) -> None:
        mark, encoding = next((known for known in _MARKS if head.startswith(known[0])), (b"", ""))
        if not mark and _UNMARKED.match(head):
            encoding = "utf-16-le"
        self._skip = len(mark)
        self._decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
        self.mark = len(mark)
        """Bytes in front of the text that are none of it."""
        self.converts = bool(encoding)
        """Whether positions in the text are others than in the file."""

    def text(self, data: bytes) -> bytes:
        """Return the next bytes of the text."""
        data, self._skip = data[self._skip :], max(0, self._skip - len(data))
        return self._decoder.decode(data).encode("utf-8", "replace") if self._decoder else data
