"""Tests of policies as YAML: given these spans, those are kept, by that policy, for that reason."""

from podtrail.testing.cases.coverage import Coverage
from podtrail.testing.cases.judging import Failure, Result, run_case
from podtrail.testing.cases.suite import Case, Suite, is_test_file, read_suite

__all__ = ["Case", "Coverage", "Failure", "Result", "Suite", "is_test_file", "read_suite", "run_case"]
