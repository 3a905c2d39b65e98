"""tests/state/test_approvals.py on PostgreSQL, but for what is otherwise there: swept in the background."""

from tests.state.test_approvals import *  # noqa: F403

del test_unresolved_requests_are_swept_and_resolved_ones_kept  # noqa: F821
