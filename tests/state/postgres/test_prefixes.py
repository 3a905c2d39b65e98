"""tests/state/test_prefixes.py on PostgreSQL."""

from tests.state.test_prefixes import *  # noqa: F403
