"""tests/state/test_recent.py on PostgreSQL, but for what is otherwise there: there is no file."""

from tests.state.test_recent import *  # noqa: F403

del test_a_state_that_was_moved_away_is_noticed  # noqa: F821
