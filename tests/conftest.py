"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says nothing on a shared machine.
settings.register_profile(
    "podtrail", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("podtrail")
