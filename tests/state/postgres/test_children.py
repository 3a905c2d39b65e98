"""tests/state/test_children.py on PostgreSQL."""

from tests.state.test_children import *  # noqa: F403
