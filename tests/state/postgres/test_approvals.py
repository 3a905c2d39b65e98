"""tests/state/test_approvals.py on PostgreSQL, but for what is otherwise there: swept in the background."""

from tests.state.test_approvals import *  # noqa: F403

del test_what_nobody_decided_on_goes_and_what_somebody_did_stays  # noqa: F821
