"""The path of one command as text: run by a shell in the sandbox, each of its connections decided while it runs.

    sandbox ─(runs)─> network ─(tunnel)─> … ─> code_output ─> files
      once             for each connection      once, if it left any

The sandbox has no network. A command that names hosts gets one way out of it, the proxy of this run. It gets files as
copies; of those that it leaves, what the last decision admits is handed out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from admission_adapters.sandbox.command import Command, run_command
from admission_adapters.sandbox.model import Backend, RunResult
from admission_adapters.tunnels.server import CA_FILE, Connection, TunnelServer, environment
from admission_adapters.tunnels.tunnel import Tunnel
from engine.code.keeping import output_request
from engine.documents.canonical import digest
from engine.drive import Call, Steps, run
from engine.errors import StateError
from engine.flow import Answer, Context, Services, answer
from engine.model import Job, Mode, Outcome, Pace, Permit, Result
from engine.points.code_output import CodeOutputLimits
from engine.points.registry import find
from engine.points.sandbox import EgressLimits, SandboxLimits, shell_words

_OUTPUT = "program"
"""Whose contract the output of a command has: that of programs that state none."""

_ALIAS = "tunnel"
"""What stands for the origin of a connection in its request; the id stands for the run."""


@dataclass(frozen=True, slots=True)
class ShellOrder:
    """A command as text. `hosts` are the exact hosts that it may ask for; without any it has no way out.

    `files` are what it finds in `inputs/`, by their paths there.
    """

    text: str
    hosts: tuple[str, ...] = ()
    profile: str = "shell"
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShellRun:
    """The answer of point `sandbox`, the result of the run, and its connections in order. None if nothing ran.

    `files` are those of its `artifacts/` that may be kept, `not_kept` the paths of the others, each with a reason.
    """

    answer: Answer
    ended: RunResult | None
    connections: tuple[Connection, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    not_kept: Mapping[str, str] = field(default_factory=dict)

    def without(self, unwritten: Sequence[str]) -> ShellRun:
        """The same, with these files among those that were not kept."""
        files = {path: data for path, data in self.files.items() if path not in unwritten}
        return replace(self, files=files, not_kept={**self.not_kept, **dict.fromkeys(unwritten, "not_written")})


def run_shell(
    order: ShellOrder,
    services: Services,
    backend: Callable[[str], Backend],
    authorities: Callable[[], bytes],
    context: Context,
) -> Steps[ShellRun]:
    """Decide on the command and run it. `authorities` has the certificates (PEM) that it may trust."""
    seen: list[tuple[RunResult, tuple[Connection, ...]]] = []

    def executor(permit: Permit, job: Job) -> Result:
        limits = permit.demand("sandbox", job.input_digest, SandboxLimits)
        evidence = services.gather_context.sandbox_facts(limits.backend, None)
        way_out: dict[str, Any] = {}
        server = None
        if limits.egress is not None:
            server = tunnel_server(order.hosts, limits.egress, services, context)
            way_out = {"tunnels": server, "environment": environment(), "files": {CA_FILE: authorities()}}
        command = Command(shell_words(order.text), cancel=job.stop, inputs=order.files, **way_out)
        result, ended = run_command(permit, job.input_digest, command, backend, evidence)
        connections = () if server is None else tuple(server.connections)
        seen.append((ended, connections))
        return replace(result, facts={**result.facts, "connections": len(connections)})

    files = [
        {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in order.files.items()
    ]
    request = {"profile": order.profile, "shell": order.text, "egress": bool(order.hosts), "files": files}
    answered = yield from answer(find("sandbox"), request, Mode.ENFORCE, services, context, executor)
    ended, connections = seen[0] if seen else (None, ())
    kept, reason = yield from _kept(ended, services, context)
    left = {} if ended is None else {one.path: one.reason for one in ended.refused_artifacts}
    artifacts = () if ended is None else ended.artifacts
    return ShellRun(
        answered,
        ended,
        connections,
        {one.path: one.data for one in artifacts if one.sha256 in kept},
        {one.path: reason for one in artifacts if one.sha256 not in kept} | left,
    )


def _kept(ended: RunResult | None, services: Services, context: Context) -> Steps[tuple[frozenset[str], str]]:
    """The SHA-256 of the files that may be kept, and why others may not; point `code_output` decides."""
    if ended is None or not ended.artifacts:
        return frozenset(), ""
    lookups = services.lookups
    request = yield Call(lambda: output_request(lookups.contracts.get(_OUTPUT, ""), ended, lookups.forms), Pace.SLOW)
    own = replace(context, approval=None, idempotency_key=None)
    decided = (yield from answer(find("code_output"), request, Mode.ENFORCE, services, own)).decision
    if isinstance(decided.limits, CodeOutputLimits) and decided.outcome is Outcome.ALLOW:
        return frozenset(decided.limits.artifacts), "artifact_secret"
    return frozenset(), decided.findings[0].code


def tunnel_server(hosts: Sequence[str], egress: EgressLimits, services: Services, context: Context) -> TunnelServer:
    """The proxy of one run: each request to it is decided on, and refused once the run has had all of its requests.

    The request of a connection is the same for each command of a run, and for no other run. So an approval that one
    connection asked for is used by the next one to the same host and port, without anyone naming its id.
    """
    own = replace(context, approval=None, idempotency_key=None)
    run_digest = digest((context.run or "").encode("utf-8", "surrogatepass")).removeprefix("sha256:")

    def decide(url: str | None, number: int, tunnel: Tunnel) -> Answer:
        request = {
            "id": f"{_ALIAS}-{run_digest}",
            "alias": _ALIAS,
            "purpose": "tunnel",
            "urls": [] if url is None else [url],
            "network": {
                "enabled": True,
                "allowed_hosts": list(hosts),
                "budget": {"max_requests": int(number < egress.most)},
            },
        }
        point, refused = find("network"), run(answer(find("network"), request, Mode.ENFORCE, services, own, tunnel))
        requested = refused.decision.approval
        if requested is None or not _granted(services, requested.id):
            return refused
        return run(answer(point, request, Mode.ENFORCE, services, replace(own, approval=requested.id), tunnel))

    return TunnelServer(
        decide,
        at_once=egress.at_once,
        most=egress.most,
        sent_bytes=egress.sent_bytes,
        received_bytes=egress.received_bytes,
    )


def _granted(services: Services, approval: str) -> bool:
    """Whether a person has granted it; no, if the state cannot be read."""
    with suppress(StateError):
        row = services.store().approval(approval)
        return row is not None and row.state == "granted"
    return False
