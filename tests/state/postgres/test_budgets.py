"""tests/state/test_budgets.py on PostgreSQL, but for what is otherwise there: swept in the background."""

from tests.state.test_budgets import *  # noqa: F403

del test_old_windows_are_swept_and_unlimited_ones_kept  # noqa: F821
del test_sweeping_is_done_in_small_steps  # noqa: F821
del test_nothing_is_swept_before_its_time  # noqa: F821
