"""`POST /v1/build`: the environment that a source bundle names, decided, built and recorded.

Only below the folder that the operator configured (`--build-root`), there in a folder of the caller's own. A refused
build returns 200 with its decision; an invalid request or an engine fault returns a problem.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.answers import BuildAnswer
from engine.api.bodies import Build
from engine.api.fetching import body_of, own_folder
from engine.api.messages import Exchange, Response
from engine.api.problems import problem
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.api.app import App


async def build(api: App, exchange: Exchange) -> Response:
    """One build. Raises EngineError before anything was decided."""
    if (root := api.engine.settings.build_root) is None:
        raise EngineError(
            "this server has no folder for what is built",
            remedy="start it with `engine serve --build-root DIR`, or use `engine build`",
            code="engine.build_disabled",
        )
    body = await body_of(api, exchange, Build, "the build")
    into = own_folder(root, exchange.caller) / body.into
    answer = await api.engine.build(Path(body.path), into, body.digest, exchange.context)
    decision = answer.decision
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision)
    built = None if answer.result is None else answer.result.facts
    made = BuildAnswer(
        folder=None if built is None else str((into / built["environment"]).relative_to(root)),
        environment=built,
        decision=decision,
    )
    headers = ((b"idempotent-replayed", b"true"),) if answer.gathered is None else ()
    return Response.of(made, decision=decision, headers=headers)
