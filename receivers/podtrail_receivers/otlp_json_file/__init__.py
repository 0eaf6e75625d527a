"""The `otlp_json_file` receiver: recordings read from files, once or as they grow."""

from dataclasses import replace
from typing import Any

from podtrail.component import Context, Factory
from podtrail_receivers.otlp_json_file.config import Config, FollowingConfig

__all__ = ["FACTORY", "UNDER_ITS_OLDER_NAME", "Config", "FollowingConfig"]


def _create(config: Config, context: Context) -> Any:
    from podtrail_receivers.otlp_json_file.receiver import FileReceiver

    return FileReceiver(config, context)


FACTORY = Factory(
    kind="receiver", type="otlp_json_file", Config=Config, create=_create, finite=True, aliases=("otlpjsonfile",)
)
UNDER_ITS_OLDER_NAME = replace(FACTORY, Config=FollowingConfig)
"""What `otlpjsonfile` is: a pasted one follows, as it does in the Collector."""
