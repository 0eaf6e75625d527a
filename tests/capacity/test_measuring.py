"""`./dev bench capacity`: it tells a figure that was measured anew beside the one that plans are made with."""

import pytest

from benchmarks.capacity import main
from podtrail.capacity import measured


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.usefixtures("kafka_assets")
def test_figures_are_measured_beside_those_that_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gzip", "kafka", "--rounds=1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    kept = measured()
    for name in ("gzip", "kafka"):
        (found,) = [row for row in rows if row[0] == name]
        assert float(found[1]) == pytest.approx(getattr(kept, name), rel=0.01)
        assert float(found[3]) == pytest.approx(1.0, abs=0.2), "bytes do not depend on the machine"


def test_a_figure_that_there_is_not_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["memory"])
    assert "no such figure: memory" in (said := capsys.readouterr().err)
    assert "process_bytes" in said
