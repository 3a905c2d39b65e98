"""tests/state/test_budgets.py on PostgreSQL, but for what is otherwise there: swept in the background."""

from tests.state.test_budgets import *  # noqa: F403

del test_old_windows_go_and_what_counts_for_ever_stays  # noqa: F821
del test_sweeping_is_done_in_small_steps  # noqa: F821
