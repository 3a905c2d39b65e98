"""tests/state/test_activations.py on PostgreSQL, but for a role that may change no digest."""

from tests.state.test_activations import *  # noqa: F403

del test_a_row_that_no_engine_wrote_lets_nothing_decide  # noqa: F821
