"""Configuration of the `otlp_json_file` receiver."""

from fnmatch import fnmatch
from typing import Literal

from pydantic import Field

from podtrail.config.types import MILLISECOND, Model, PositiveDuration
from podtrail_receivers.files.matching import means


class Config(Model):
    """Read recordings: one request a line (OTLP JSON) or frame (length-prefixed protobuf), plain, gzip or zstd.

    The Collector's receiver of this name always follows, from the end on; here that is asked for.
    """

    include: tuple[str, ...] = Field(
        min_length=1, description="Files to read: paths, or patterns with `*`, `?`, `[…]` and `**`."
    )
    exclude: tuple[str, ...] = Field((), description="Files of these not to read: paths or patterns.")
    follow: bool = Field(
        False,
        description="Go on as files grow, rotate and appear; otherwise read what is there and end.",
    )
    start_at: Literal["beginning", "end"] = Field(
        "beginning", description="With `follow`: where to begin in files that are there at the start."
    )
    poll_interval: PositiveDuration = Field(
        200 * MILLISECOND, description="With `follow`: how often to look for what is new."
    )

    def reads(self, path: str) -> bool:
        """Say whether a file is read, now or once it exists."""
        if any(fnmatch(path, pattern) or means(pattern, path) for pattern in self.exclude):
            return False
        return any(means(pattern, path) for pattern in self.include)
