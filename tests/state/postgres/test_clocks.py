"""tests/state/test_clocks.py on PostgreSQL."""

from tests.state.test_clocks import *  # noqa: F403
