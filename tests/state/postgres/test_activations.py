"""tests/state/test_activations.py on PostgreSQL, but for a role that may change no digest."""

from tests.state.test_activations import *  # noqa: F403

del test_a_damaged_activation_is_refused  # noqa: F821
