"""Specifications of agents, and a person who approves them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from engine.provisioning import Provisioned
from tests.expect import there

PROVISIONER = Context(caller=Caller(via=Via.PROCESS, principal="provisioner"))
ANA = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))


def specification(**changes: Any) -> str:
    """The JSON text of a NewAgentProvisioning."""
    return json.dumps(
        {
            "name": "buyer_2",
            "role": "Actor",
            "system_prompt": "You buy apples.",
            "tools": ["http_get"],
            "constraints": {"max_turns": 20, "max_tokens": 20_000},
            **changes,
        }
    )


def asked(engine: Engine, text: str) -> str:
    """The id of the approval that a new agent waits for."""
    waiting = engine.provision(text, PROVISIONER)
    assert (waiting.answer.decision.outcome, waiting.agent) == ("confirm", None)
    return there(waiting.answer.decision.approval).id


def resolved(engine: Engine, approval: str, act: str = "grant_approval") -> None:
    """Have a person grant or refuse an approval."""
    done = engine.administer({"act": act, "id": approval, "reason": "read"}, ANA)
    assert done.done is not None, done.answer.decision.findings


def with_approval(engine: Engine, text: str, approval: str) -> Provisioned:
    return engine.provision(text, replace(PROVISIONER, approval=approval))


def mounted(engine: Engine, text: str) -> str:
    """The id of an agent that a person approved."""
    approval = asked(engine, text)
    resolved(engine, approval)
    return there(with_approval(engine, text, approval).agent)


def codes(got: Provisioned) -> list[str]:
    return [finding.code for finding in got.answer.decision.findings]
