"""Who podtrail says it is when it sends: the `User-Agent` of its requests over gRPC and HTTP."""

from typing import Final

from podtrail import __version__

USER_AGENT: Final = f"podtrail/{__version__}"
