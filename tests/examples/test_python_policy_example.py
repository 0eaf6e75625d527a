"""The policies in Python that the repository shows work, alone and in a configuration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podtrail.otlp import write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

POLICIES = Path(__file__).parents[2] / "examples" / "policies"
PATIENCE = 600.0


def test_their_own_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=prepend", str(POLICIES)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_keeps_what_they_say_and_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(POLICIES)
    attempts = [no_room(), no_room(number=2, namespace="shop", refusals=()), MadeAttempt(number=3)]
    sent = [(attempt.start, write_request(attempt.groups())) for attempt in attempts]
    run = replay(POLICIES / "namespaces.yaml", sent)
    told = {decision["traceId"]: (decision["policy"], decision["reason"]) for decision in run.decisions}
    assert [told[attempt.trace_id.hex()] for attempt in attempts] == [
        ("too-little-cpu", "2 nodes have too little cpu"),
        ("too-little-cpu", "nodes have too little cpu"),
        ("", "no policy said yes"),
    ]


def test_without_a_place_to_find_it_the_error_says_what_to_do() -> None:
    from podtrail.config import ConfigError

    with pytest.raises(ConfigError, match=r"(?s)there is no module 'namespaces_of_nobody'.*PYTHONPATH"):
        replay((POLICIES / "namespaces.yaml").read_text().replace("namespaces:", "namespaces_of_nobody:"), [])
