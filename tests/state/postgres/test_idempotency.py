"""tests/state/test_idempotency.py on PostgreSQL, but for sweeps, which run beside, and the limit of a file."""

from tests.state.test_idempotency import *  # noqa: F403

del test_expired_keys_go_in_small_steps  # noqa: F821
del test_an_answer_that_is_too_large_for_the_file_harms_nobody_else  # noqa: F821
