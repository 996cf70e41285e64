"""How hard the laws are tried: the same everywhere, without a clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "laws",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("laws")
