"""Settings of all tests.

Properties are tried on the same examples in every run, so that what passes here passes elsewhere; to look for new
ones: `./dev test --hypothesis-profile=search`.
"""

import signal

from hypothesis import HealthCheck, settings

# How long an example takes says nothing on a shared machine.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("podtrail", deadline=None, suppress_health_check=_SLOW, derandomize=True)
settings.register_profile("search", deadline=None, suppress_health_check=_SLOW, max_examples=1000)
settings.load_profile("podtrail")

# A shell starts what runs in the background with Ctrl-C ignored, and so it would stay in every process started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
