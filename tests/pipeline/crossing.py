"""Run as a process of its own: all configurations fed whole, or up to a checkpoint, or from one on.

`python -m tests.pipeline.crossing whole|before|after FOLDER`. Prints a digest of what each lets out.
"""

import hashlib
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CONFIGURATIONS
from tests.pipeline.interrupted import Arrival, Run, Told

REQUESTS, AT, SEED = 80, 50, 11


def requests_of() -> list[Arrival]:
    return arrivals(REQUESTS, SEED)


def main(part: str, folder: Path) -> Mapping[str, str]:
    logging.disable()
    requests = requests_of()
    digests = {}
    for number, (name, tried) in enumerate(CONFIGURATIONS.items()):
        told = Told()
        file = folder / f"{number}.checkpoint"
        run = Run(tried.settings(), told, tried.gates, now=requests[AT - 1][0] if part == "after" else 0)
        if part == "after":
            run.restore([file.read_bytes()])
        else:
            run.feed(requests[:AT])
        if part == "before":
            file.write_bytes(run.taken()[0])
            continue
        told.out.clear()
        run.feed(requests[AT:])
        run.replayer.finish()
        digests[name] = hashlib.sha256(repr(told.out).encode()).hexdigest()
    return digests


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
