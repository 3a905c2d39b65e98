"""tests/state/test_idempotency.py on PostgreSQL, but for sweeps, which run beside, and the limit of a file."""

from tests.state.test_idempotency import *  # noqa: F403

del test_expired_keys_are_removed_in_small_steps  # noqa: F821
del test_an_oversized_answer_fails_and_leaves_its_key_pending  # noqa: F821
