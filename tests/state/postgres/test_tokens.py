"""tests/state/test_tokens.py on PostgreSQL, but for what is otherwise there: there are no files; cached by time."""

from tests.state.test_tokens import *  # noqa: F403

del test_no_secret_is_kept_or_shown  # noqa: F821
del test_a_row_is_read_once_until_something_changes  # noqa: F821
