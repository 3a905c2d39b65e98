"""The HTTP API of a runner: runs of agents on this machine, what it can hold, and the calls of runs in progress.

POST /run           decided, then run in the sandbox; the result, or its events for clients that follow it
GET  /capabilities  which boundaries can be enforced where, what each harness can do, and how that is known
GET  /inspect       the schemas of the served revision; harnesses with their models and connection modes
POST /tools/call    a call of a run in progress of the same caller
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.api.answers import Capabilities, Inspection, Schemas, ServedRevision, ToolAnswer
from engine.api.bodies import ToolCall
from engine.api.load import overloaded
from engine.api.making import body_of
from engine.api.messages import Exchange, Response
from engine.api.run import RunRequest, Runs, for_threads, print_stack, respond_to
from engine.api.streams import Following
from engine.documents.canonical import canonical
from engine.errors import EngineError, fault_inside
from engine.facts.run_request import WireRunRequest
from engine.facts.run_result import AgentOutputs, WireRunResult
from engine.runner.run import AgentRunner, RunnerSettings
from engine.secrets.redaction import redact_text
from engine.steps import own_thread

if TYPE_CHECKING:
    from engine.api.app import App


class AgentRuns(Runs):
    """Answers the paths of a runner. For one event loop."""

    def __init__(self, settings: RunnerSettings) -> None:
        super().__init__()
        self._settings = settings
        self._runner: AgentRunner | None = None

    async def perform(self, api: App, exchange: Exchange, request: RunRequest, following: Following) -> Response:
        """Decide the run and run it here."""
        parts, context = for_threads(api), exchange.context
        runner, account = self._of(api), exchange.account
        if not api.programs.take(account):  # each is a program in a sandbox
            raise overloaded()
        try:
            ran = await own_thread(lambda: runner.run(request.text, parts, context, following))
        finally:
            api.programs.give(account)
        if (stopped := ran.problem) is not None:
            await own_thread(lambda: print_stack(stopped))
        if ran.answer is None:
            raise fault_inside("run", "see the record")
        if ran.result is None:
            return await respond_to(ran.answer, exchange)
        error = None if ran.result.error is None else redact_text(ran.result.error)
        return Response.of(ran.result.model_copy(update={"error": error}), decision=ran.answer.decision)

    async def capabilities(self, api: App, _exchange: Exchange) -> Response:
        """What can be enforced and done here. The first answer takes seconds: everything is tried."""
        return Response.of(await self._published(api))

    async def inspect(self, api: App, _exchange: Exchange) -> Response:
        """The served revision with its schemas, and the harnesses: a copy in each answer."""
        revision = ServedRevision(
            policy=None if api.engine.policy is None else api.engine.policy.revisions,
            schemas=Schemas(
                inputs=WireRunRequest.model_json_schema(),
                outputs=AgentOutputs.model_json_schema(),
                result=WireRunResult.model_json_schema(),
            ),
        )
        return Response.of(Inspection(revision=revision, harnesses=(await self._published(api)).harnesses))

    async def call(self, api: App, exchange: Exchange) -> Response:
        """A call of a run in progress, decided like those of its harness."""
        body = await body_of(api, exchange, ToolCall, "the call")
        runner, caller = self._of(api), exchange.caller
        result = await own_thread(lambda: runner.call(body.run_id, caller, body.name, body.arguments))
        if result is None:
            raise EngineError(
                "this caller has no such run in progress", remedy="use the run_id of a run", code="engine.run_unknown"
            )
        return Response.of(
            ToolAnswer(status=result.status, content=result.text, code=result.code, approval=result.approval)
        )

    async def _published(self, api: App) -> Capabilities:
        runner, parts = self._of(api), for_threads(api)
        found = await own_thread(lambda: runner.capabilities(parts))
        return Capabilities.model_validate_json(canonical(found))

    def _of(self, api: App) -> AgentRunner:
        if self._runner is None:
            self._runner = AgentRunner(api.engine.executors.machine().backend, self._settings)
        return self._runner
