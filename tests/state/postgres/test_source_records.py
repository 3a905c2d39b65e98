"""tests/state/test_source_records.py on PostgreSQL."""

from tests.state.test_source_records import *  # noqa: F403
