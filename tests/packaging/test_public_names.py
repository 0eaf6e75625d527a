"""Names that users import stay where the documents say they are; a sampler says what its verdicts tell."""

import importlib

import pytest
from podtrail_processors import tail_sampling
from podtrail_processors.tail_sampling import trace_view

from podtrail import policy
from podtrail.component import DecidingConfig


@pytest.mark.parametrize(
    "module", ["podtrail.component", "podtrail.policy", "podtrail.testing", "podtrail.testing.attempts"]
)
def test_a_public_module_has_what_it_promises(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def test_the_older_name_of_the_policy_module_gives_the_same_types() -> None:
    assert {name: getattr(policy, name) for name in trace_view.__all__} == {
        name: getattr(trace_view, name) for name in trace_view.__all__
    }


def test_a_sampler_says_whose_votes_its_verdicts_tell() -> None:
    policies = [{"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}]
    config = tail_sampling.FACTORY.Config.model_validate({"policies": policies, "sample_on_first_match": True})
    assert isinstance(config, DecidingConfig)
    assert (list(config.policy_names), config.asks_all_policies) == (["failed"], False)
