"""tests/state/test_attempts.py on PostgreSQL."""

from tests.state.test_attempts import *  # noqa: F403
