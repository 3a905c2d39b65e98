"""`engine policy`."""

from __future__ import annotations

from engine.cli import options
from engine.cli.policy.agreed import leave, status
from engine.cli.policy.authoring import facts, init, values
from engine.cli.policy.checking import lint_policy, run_policy_tests
from engine.cli.policy.commands import app
from engine.cli.policy.coverage import coverage
from engine.cli.policy.diff import diff_policies
from engine.cli.policy.releases import approve_policy, history, roll_back
from engine.cli.policy.waivers import list_waivers

__all__ = ["app"]

_COMMANDS: dict[str, options.Command] = {
    "init": init,
    "input": facts,
    "values": values,
    "lint": lint_policy,
    "test": run_policy_tests,
    "coverage": coverage,
    "diff": diff_policies,
    "waivers": list_waivers,
    "approve": approve_policy,
    "rollback": roll_back,
    "history": history,
    "status": status,
    "leave": leave,
}
for name, command in _COMMANDS.items():
    app.command(name)(command)
