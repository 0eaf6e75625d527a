"""Results as JUnit's XML, as CI systems read it: a suite a file, a case a case."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from podtrail.config import printable
from podtrail.testing.cases.failure_text import failure_lines
from podtrail.testing.cases.judging import CaseResult

_NOT_XML: Final = re.compile("[\ufffe\uffff]")


def write_junit(path: Path, results: Sequence[tuple[CaseResult, float]]) -> None:
    """Write results, each with the seconds that it took.

    Raises:
        OSError: the file can't be written.
    """
    root = ET.Element("testsuites", _sums(results), name="podtrail test")
    for file in dict.fromkeys(result.suite.path for result, _ in results):
        of_file = [(result, took) for result, took in results if result.suite.path == file]
        suite = ET.SubElement(root, "testsuite", _sums(of_file), name=_safe(str(file)))
        for result, took in of_file:
            _case(suite, result, took)
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _case(suite: ET.Element, result: CaseResult, took: float) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_safe(str(result.suite.path)),
        name=_safe(result.case.name),
        file=_safe(str(result.suite.path)),
        line=str(result.case.place.line),
        time=f"{took:.3f}",
    )
    if result.failures:
        # One element: readers show the first of several only.
        failed = ET.SubElement(case, "failure", message=_safe(result.failures[0].headline), type="expectation")
        failed.text = _NOT_XML.sub("?", "\n".join(line for one in result.failures for line in failure_lines(one)))


def _sums(results: Sequence[tuple[CaseResult, float]]) -> dict[str, str]:
    failures = sum(not result.passed for result, _ in results)
    seconds = sum(took for _, took in results)
    return {"tests": str(len(results)), "failures": str(failures), "errors": "0", "time": f"{seconds:.3f}"}


def _safe(text: str) -> str:
    return _NOT_XML.sub("?", printable(text))
