"""Tests of policies as YAML: given these spans, those are kept, by that policy, for that reason."""

from podtrail.testing.cases.coverage import Coverage
from podtrail.testing.cases.judging import CaseFailure, CaseResult, run_case
from podtrail.testing.cases.suite import Case, Suite, is_test_file, read_suite

__all__ = ["Case", "CaseFailure", "CaseResult", "Coverage", "Suite", "is_test_file", "read_suite", "run_case"]
