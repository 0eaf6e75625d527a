"""Run as its own process: `python -m tests.pipeline.digests FILE ...` prints what tells the chains of files apart."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from podtrail.pipeline.checkpoint.inventory import Inventory
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.replay.replayer import Replayer, read_config
from tests.pipeline.configurations import CONFIGURATIONS, Tried


def of(settings: Settings, gates: frozenset[str] = frozenset()) -> str:
    chains = Replayer(settings, lambda *_: None, gates).chains
    return " ".join(Inventory(chain).digest() for chain in chains.values())


def main(files: Sequence[str]) -> Mapping[str, str]:
    logging.disable()
    found = {name: of(tried.settings(), tried.gates) for name, tried in CONFIGURATIONS.items()}
    for file in files:
        document = next(iter(yaml.safe_load_all(Path(file).read_text(encoding="utf-8"))))
        whole = "service" in document
        settings = read_settings(read_config(Path(file))) if whole else Tried(document["processors"]).settings()
        found[file] = of(settings)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
