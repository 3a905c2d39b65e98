"""tests/state/test_touches.py on PostgreSQL, but for what is otherwise there: swept in the background."""

from tests.state.test_touches import *  # noqa: F403

del test_rows_are_few_and_end_with_a_run_that_is_not_used  # noqa: F821
