"""The verdict in one sentence, the first thing a report says."""

from podtrail.backtest.report import Report
from podtrail.story import several


def sentence(report: Report) -> str:
    """Return what the candidate changes, or (alone) what it keeps."""
    if not report.came.spans:
        return "Nothing to compare: the recording holds no span."
    return _alone(report) if report.alone else _compared(report)


def _alone(report: Report) -> str:
    _, side = report.sides
    slow = f" and {side.lost_slow:,} of {report.came.slow:,} slow ones" if report.came.slow else ""
    failed = f"{side.lost_failed:,} of {several(report.came.failed, 'failed attempt')}"
    kept = percent(side.spans / report.came.spans)
    return f"The candidate keeps {kept} of the spans, loses {failed}{slow}{_stories(side.pods_broken)}."


def _compared(report: Report) -> str:
    before, after = report.sides
    parts = [f"keeps {change(before.spans, after.spans)} spans"]
    for verb, counts in (("loses", report.lost), ("gains", report.gained)):
        failed = f"{several(counts['failed'], 'failed attempt')}" if counts["failed"] or verb == "loses" else ""
        slow = f"{counts['slow']:,} slow one{'s' * (counts['slow'] != 1)}" if counts["slow"] else ""
        if failed or slow:
            parts.append(f"{verb} {' and '.join(filter(None, (failed, slow)))}")
    return f"The candidate {', '.join(parts)}{_stories(report.newly_broken)}."


def _stories(broken: int) -> str:
    return f"; it breaks the story of {several(broken, 'Pod')}" if broken else ""


def change(before: int, after: int) -> str:
    """Return by how much more or fewer something is: `18 % fewer`, `as many`."""
    if before == after:
        return "as many"
    if not before:
        return f"{after:,} more"
    ratio = after / before
    if ratio >= 2:
        return f"{ratio:,.3g} times as many"
    return f"{percent(abs(ratio - 1))} {'more' if after > before else 'fewer'}"


def percent(share: float) -> str:
    """Return a share in percent, never rounded to none or to all."""
    value = 100 * share
    if 0 < value < 0.1:
        return "under 0.1 %"
    if 99.9 < value < 100:
        return "over 99.9 %"
    return f"{value:.1f} %" if 0 < value < 10 or 90 < value < 100 else f"{value:.0f} %"
