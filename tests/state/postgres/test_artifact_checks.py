"""tests/state/test_artifact_checks.py on PostgreSQL."""

from tests.state.test_artifact_checks import *  # noqa: F403
