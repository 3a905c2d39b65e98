"""tests/state/test_models.py on PostgreSQL."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import settings

from engine.state import open_shared
from engine.state.store import Store
from tests.lanes import examples
from tests.postgres import SERVING, Server
from tests.state.samples import PATIENT
from tests.state.test_models import ApprovalMachine, BudgetMachine


class _OnPostgres:
    server: ClassVar[Server]
    name: ClassVar[str]

    def open(self) -> Store:
        return open_shared(self.server.address(self.name, SERVING), PATIENT)

    def teardown(self) -> None:
        super().teardown()  # type: ignore[misc]
        self.server.empty(self.name)


class Budgets(_OnPostgres, BudgetMachine):
    pass


class Approvals(_OnPostgres, ApprovalMachine):
    pass


@pytest.fixture(scope="module", autouse=True)
def on_a_database(server: Server, database: str) -> None:
    _OnPostgres.server, _OnPostgres.name = server, database


_BOUNDED: Any = settings(max_examples=examples(10), stateful_step_count=20)
TestBudgets = Budgets.TestCase
TestBudgets.settings = _BOUNDED
TestApprovals = Approvals.TestCase
TestApprovals.settings = _BOUNDED
