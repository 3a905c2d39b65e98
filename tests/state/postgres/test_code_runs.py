"""tests/state/test_code_runs.py on PostgreSQL."""

from tests.state.test_code_runs import *  # noqa: F403
