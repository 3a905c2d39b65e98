"""tests/state/test_agents.py on PostgreSQL."""

from tests.state.test_agents import *  # noqa: F403
