"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A machine that does much else draws examples slowly; that says nothing about the program.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
