"""One run of an agent on this machine.

    runner_request ─> model_ref ─> runner_capability ─> tool_visibility ─> mcp ─> sandbox ─> the harness
    the whole run     its model    its tools            what is shown      plan   where      tool_call, tool_result

Every arrow is a decision, recorded, under the policy that admitted the run. What cannot be held is refused before
the harness starts; a tool is shown to its model, or the run fails and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from admission_adapters.runner.answer import secrets_of
from admission_adapters.runner.callback import Callback, CallbackError
from admission_adapters.runner.harness import Harness, HarnessError
from admission_adapters.runner.relay import Relay
from admission_adapters.runner.run import Grant
from admission_adapters.runner.sealed import Opener
from admission_adapters.sandbox.model import Backend
from admission_adapters.tools.gate import ToolGate, ToolResult
from admission_adapters.tools.registry import UncuratedToolRegistry
from engine.documents.canonical import RawJson, canonical
from engine.errors import StateError, WorkError
from engine.facts.run_request import Endpoint, WireRunRequest
from engine.facts.run_result import AgentOutputs, Usage, WireRunResult
from engine.flow import Answer, Context, Services
from engine.model import Caller, Job, Permit, Result, Revisions, StopSignal, Via
from engine.points import Probed
from engine.points.runner_capability import CapabilityLimits
from engine.points.runner_request import RunnerLimits
from engine.points.tool_visibility import VisibilityLimits
from engine.runner.asking import Decisions, StoppedError, same_policy
from engine.runner.evidence import EGRESS, RunEvidence
from engine.runner.harnesses import JAIL, Harnesses, capabilities_of
from engine.runner.invariants import demand
from engine.runner.plan import RunPlan, definition, planned
from engine.runner.servers import Servers, ServerTool, relay_of, relayed

Follow = Callable[[dict[str, Any]], None]
"""Gets what happens during a run, for callers that follow it."""

_LOOK_SECONDS = 0.2
"""Between two looks at whether a person has approved a call."""

_ADVERTISED_SECONDS = 5.0
"""For how long a call over the relay waits until the harness has advertised its tools."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The decision that admitted or refused a run, and the result if it was begun."""

    answer: Answer | None = None
    result: WireRunResult | None = None
    problem: WorkError | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """An admitted run, with its permit and what was shown for it."""

    run_id: str
    request_text: RawJson
    request: WireRunRequest
    limits: RunnerLimits
    grant: Grant
    evidence: RunEvidence
    policy: Revisions | None
    follow: Follow
    stop: StopSignal
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Each call that was made: its tool, how it ended, and its decision."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What the operator of a runner sets beside the policy.

    `opener` has the key for sealed secrets. `callbacks` is the origin where tools are called whose run states no
    callback. `variables` are set for every harness. `ca_file` has the authorities (PEM) that callbacks and platforms
    are trusted by; None for those of certifi.
    """

    opener: Opener
    callbacks: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None


class AgentRunner:
    """Runs agents on this machine; threads may share it."""

    def __init__(self, backend: Callable[[str], Backend], settings: RunnerSettings) -> None:
        self.harnesses = Harnesses(backend, settings.variables)
        self._settings = settings
        self._active: dict[str, tuple[Caller, Calls]] = {}

    def run(self, request_text: RawJson, services: Services, context: Context, follow: Follow) -> Ran:
        """Decide a run and everything that it needs, and run it under its permit; blocks until it has ended."""
        run_id = services.new_id()
        evidence = RunEvidence(run_id, request_text, services, self.harnesses, self._settings.ca_file)
        known = replace(
            services.gather_context, boundaries=lambda: evidence.boundaries, callbacks=self._settings.callbacks
        )
        knowing = replace(services, gather_context=known)
        own = context if context.idempotency_key else replace(context, run=context.run or run_id)  # the key covers it
        decisions = Decisions(knowing, replace(context, run=context.run or run_id, approval=None, idempotency_key=None))
        ended: list[Ran] = []
        policy = services.revisions

        def execute(permit: Permit, job: Job) -> Result:
            limits = permit.demand("runner_request", job.input_digest, RunnerLimits)
            grant = Grant(permit, job.input_digest)
            request = WireRunRequest.model_validate_json(request_text.data)
            active = _Run(run_id, request_text, request, limits, grant, evidence, policy, follow, job.stop)
            try:
                stopped = Ran(result=self._admitted(active, decisions))
                status, code = "finished", None
            except StoppedError as refusal:
                stopped = Ran(refusal.answer)
                status, code = "refused", refusal.answer.decision.point
            except WorkError as error:
                stopped = Ran(result=WireRunResult(ok=False, run_id=run_id, error=error.message), problem=error)
                status, code = "run_failed", error.code
            self._report(active, stopped, services)
            ended.append(stopped)
            facts = {"run_id": run_id, "harness": limits.harness, "backend": limits.sandbox.backend}
            return Result(status, facts if code is None else {**facts, "by": code})

        try:
            answer = Decisions(knowing, own).decide("runner_request", request_text, execute)
        finally:
            evidence.close()
            if context.run is None:
                with suppress(StateError):  # it ends by its age then
                    services.store().end_run(run_id)
        if not ended or answer.fault is not None:
            return Ran(answer)
        return ended[0] if ended[0].answer is not None else replace(ended[0], answer=answer)

    def call(self, run_id: str, caller: Caller, name: Any, arguments: Any) -> ToolResult | None:
        """Make a call of a run in progress, decided like those of its harness; None if this caller has no such run."""
        owner, calls = self._active.get(run_id, (None, None))
        return None if calls is None or owner != caller else calls.made(name, arguments)

    def capabilities(self, services: Services) -> dict[str, Any]:
        """Which boundaries can be enforced where, what each harness can do, and how that is known."""
        backends = services.lookups.backends
        proven = self.harnesses.boundaries(services)
        return {
            "backends": {
                name: {"host": row["host"], "boundaries": _boundaries(name, proven)} for name, row in backends.items()
            },
            "harnesses": self.harnesses.published(_as_runner(services)),
        }

    def _admitted(self, active: _Run, decisions: Decisions) -> WireRunResult:
        """The run, under its permit. Raises StoppedError or WorkError."""
        services, limits = decisions.services, active.limits
        lookups = services.lookups
        place = lookups.backends[limits.sandbox.backend]
        rows = lookups.harnesses[limits.harness], place
        plan = planned(active.request, limits, *rows, self._settings.callbacks)
        if plan.profile is None:
            return self._with(plan, [], active, decisions)
        with closing(Servers(decisions, plan.profile, partial(self.harnesses.server, services))) as servers:
            return self._with(plan, servers.start(plan.servers), active, decisions)

    def _with(
        self, admitted: RunPlan, found: Sequence[ServerTool], active: _Run, decisions: Decisions
    ) -> WireRunResult:
        """The run with the tools of its MCP servers. Raises StoppedError or WorkError."""
        services, plan = decisions.services, admitted.with_tools([one.tool for one in found])
        probed = self.harnesses.probed(plan.harness, _as_runner(services)) if plan.profile is not None else None
        known = replace(services.gather_context, capabilities={plan.harness: probed}.get)
        knowing = replace(decisions, services=replace(services, gather_context=known))
        if (model := active.request.agent.model) is not None:
            reference = {**model.model_dump(), "slug_provider": model.provider}
            knowing.demand("model_ref", {"phase": "run", "harness": plan.harness, "reference": reference})
        self._capable(plan, probed, knowing)
        callback = self._callback(active, plan.callback, "tool_callback")
        calls = Calls(plan, knowing, callback, active.follow, active.calls, found)
        listener = Listener(plan, probed, calls, active.follow)
        relay = None
        if plan.relayed and plan.profile is not None:
            relay = relay_of(knowing, plan.profile, plan.task["tools"], listener.relayed)
        task = plan.task if relay is None else relayed(plan.task)
        talk = Harness(task, listener, secrets_of(active.request_text.data))
        calls.over = talk.over
        same_policy(active.policy, services.revisions)
        self._active[active.run_id] = decisions.context.caller, calls
        active.follow({"type": "started", "run_id": active.run_id})
        try:
            cause = self._here(plan, knowing, talk, relay) if plan.profile is not None else _there(plan, active, talk)
        finally:
            del self._active[active.run_id]
        if active.stop.is_set():  # whatever the harness said to the call that ended so
            raise WorkError("the run was stopped", remedy="see `engine stop list`", code="engine.runner_stopped")
        if talk.problem is not None:
            raise talk.problem
        if talk.result is None:
            raise HarnessError(
                f"the harness ended without a result: {cause}",
                remedy="see the limits of its profile in policy/sandbox.yaml",
            )
        listener.ended()
        return _result(active.run_id, talk.result)

    def _report(self, active: _Run, ran: Ran, services: Services) -> None:
        """Post how the run ended to its trace. An unreachable trace fails no run; it is logged."""
        target, result = self._callback(active, active.request.trace, "trace"), ran.result
        if target is None or result is None:
            return
        summary = {"run_id": active.run_id, "harness": active.limits.harness, "calls": active.calls}
        try:
            target.post({**summary, **result.model_dump(mode="json", include={"ok", "error", "usage"})})
        except (CallbackError, WorkError) as error:
            services.on_event("trace", {"run_id": active.run_id, "problem": str(error)})

    def _callback(self, active: _Run, to: Endpoint | None, place: str) -> Callback | None:
        if to is None:
            return None
        opener, ca_file = self._settings.opener, self._settings.ca_file
        return Callback(active.grant, active.run_id, place, to.endpoint, to.authorization, opener, active.stop, ca_file)

    def _here(self, plan: RunPlan, decisions: Decisions, talk: Harness, relay: Relay | None) -> str:
        """Run the harness in a sandbox of this machine; returns what ended it."""
        request = {"profile": plan.profile, "command": list(plan.command), "declared": list(plan.declared)}
        command = self.harnesses.command_of(plan.command, talk, relay)
        executor = self.harnesses.executor(decisions.services, command, lambda: talk.result is not None)
        _, ran = decisions.demand("sandbox", request, executor)
        return "" if ran.result is None else str(ran.result.facts.get("root_cause", ""))

    def _capable(self, plan: RunPlan, probed: Probed | None, decisions: Decisions) -> None:
        """Whether harness and policy take all tools of the run. Raises StoppedError, InvariantError or WorkError."""
        permit, _ = decisions.demand("runner_capability", {"harness": plan.harness, "tools": plan.names})
        granted = permit.demand("runner_capability", permit.input_digest, CapabilityLimits)
        agreed(plan, probed, granted)
        if not plan.tools:
            return
        request = {**plan.calls.model_dump(), "tools": [definition(tool) for tool in plan.tools]}
        permit, audited = decisions.demand("tool_visibility", request)
        visible = permit.demand("tool_visibility", permit.input_digest, VisibilityLimits).visible
        missing = [name for name in plan.names if name not in visible]
        if missing:
            codes = sorted({finding.code for finding in audited.decision.findings})
            raise WorkError(
                f"the tool `{missing[0]}` cannot be advertised: {', '.join(codes)}",
                remedy="add the tool to policy/tools.yaml, or leave it out of the run",
                code="engine.run_unsupported",
            )


def agreed(plan: RunPlan, probed: Probed | None, granted: CapabilityLimits) -> None:
    """The capability gate must have decided on exactly these tools and this probe. Raises InvariantError."""
    source = "none" if probed is None else probed.source
    demand(
        granted.harness == plan.harness and granted.tools == tuple(plan.names) and granted.source == source,
        "the capability gate decided on another harness, other tools or another probe",
        "send the run again",
    )


class Calls:
    """The tool calls of one run: each decided, made by its callback, and its result decided again."""

    over: threading.Event

    def __init__(
        self,
        plan: RunPlan,
        decisions: Decisions,
        callback: Callback | None,
        follow: Follow,
        made: list[dict[str, Any]],
        found: Sequence[ServerTool],
    ) -> None:
        """`found` are the tools of MCP servers; the callback calls all others."""
        servers = {one.tool.name: one.call for one in found}
        registry = UncuratedToolRegistry()
        for tool in plan.tools:
            if tool.name in servers:
                registry.add(tool.name, servers[tool.name], definition(tool))
            elif callback is not None:
                registry.add(tool.name, callback.tool(tool.name, tool.kind), definition(tool))
        self._decisions, self._follow, self._made = decisions, follow, made
        self._gate = ToolGate(
            decisions, registry, decisions.context, policy=plan.calls.policy, profile=plan.calls.profile
        )

    def made(self, name: Any, arguments: Any) -> ToolResult:
        """Make one call; where a person has to approve it, once that has happened, or in time has not."""
        call = {"name": name, "arguments": arguments}
        result = self._gate.call(call)
        if result.status == "awaiting_approval" and result.approval is not None:
            self._follow({"type": "approval", "approval": result.approval, "tool": name})
            services = self._decisions.services
            store, now = services.store(), services.gather_context.clock
            while (row := store.approval(result.approval)) and row.state == "requested" and now() < row.expires_at:
                if self.over.wait(_LOOK_SECONDS):
                    return result
            result = self._gate.call(call, result.approval)
        self._made.append({"tool": str(name), "status": result.status, "decision_id": result.decision_id})
        return result


@dataclass(slots=True)
class Listener:
    """Listens to the harness of one run, and holds it to its plan."""

    plan: RunPlan
    probed: Probed | None
    calls: Calls
    follow: Follow
    tools_advertised: threading.Event = field(default_factory=threading.Event)

    def started(self, reported: dict[str, Any]) -> None:
        """It must be what was probed, or it could drop tools."""
        found = capabilities_of(reported)
        known = {} if self.probed is None else self.probed.capabilities
        demand(
            all(found[flag] or not needed for flag, needed in known.items()),
            "the harness started with fewer capabilities than its probe found",
            "see the log of the harness, then send the run again",
        )

    def advertised(self, tools: Any) -> None:
        """Exactly the tools of the run, no more and no less."""
        demand(
            tools == self.plan.names,
            "the harness does not advertise exactly the declared tools to its model",
            "use a harness that takes the tools of a run, or leave them out",
        )
        self.tools_advertised.set()

    def called(self, name: Any, arguments: Any) -> tuple[str, bool]:
        """One call, which only a tool that was shown can have."""
        self.ended()
        result = self.calls.made(name, arguments)
        self.follow({"type": "tool_call", "tool": str(name), "status": result.status, "code": result.code})
        return result.text, result.status != "ok"

    def relayed(self, name: Any, arguments: Any) -> tuple[str, bool]:
        """One call over the relay, which may be heard before what the harness said earlier."""
        self.tools_advertised.wait(_ADVERTISED_SECONDS)
        return self.called(name, arguments)

    def updated(self, update: dict[str, Any]) -> None:
        """What the harness reports of itself."""
        self.follow({"type": "update", "update": update})

    def ended(self) -> None:
        """No tool is silently missing (D61)."""
        demand(
            self.tools_advertised.is_set() or not self.plan.tools,
            "the harness never advertised the declared tools",
            "use a harness that takes the tools of a run, or leave them out",
        )


def _there(plan: RunPlan, active: _Run, talk: Harness) -> str:
    """Run the harness in the sandbox that the platform made for this run; it hears everything at once."""
    made = active.evidence.sandbox()
    demand(made is not None, "a remote run has no sandbox", "state the platform of its backend in policy/runners.yaml")
    if made is not None:
        platform, sandbox = made
        output = platform.run(active.grant, sandbox, plan.command, talk.script(), active.stop)
        talk.begin(lambda _: None)
        talk.hear(output)
        talk.end()
    return "it said no more"


def _result(run_id: str, result: Mapping[str, Any]) -> WireRunResult:
    try:
        outputs = AgentOutputs.model_validate_json(canonical(result.get("outputs")))
        usage = Usage.model_validate_json(canonical(result.get("usage", {})))
    except (ValidationError, ValueError) as error:
        raise HarnessError("the result of the harness has another form", remedy="see docs/runner.md") from error
    return WireRunResult(ok=True, run_id=run_id, outputs=outputs, usage=usage)


def _as_runner(services: Services) -> Decisions:
    """Decisions of the runner itself, such as those on its probes."""
    return Decisions(services, Context(caller=Caller(via=Via.PROCESS)))


def _boundaries(backend: str, proven: Any) -> list[dict[str, Any]]:
    """Each boundary that a run may declare, and whether this backend was shown to enforce it."""
    found = {one.boundary: one for one in proven if one.backend == backend}
    return [
        {
            "boundary": name,
            "enforced": name in found and found[name].enforced,
            "source": "probed" if name in found else "static",
        }
        for name in (EGRESS, JAIL[1])
    ]
