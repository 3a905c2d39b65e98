"""The path of one command as text: run by a shell in the sandbox, each of its connections decided while it runs.

    sandbox ─(runs)─> network ─(tunnel)─> …
      once             for each connection

The sandbox has no network. A command that names hosts gets one way out of it, the proxy of this run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from admission_adapters.sandbox.command import Command, run_command
from admission_adapters.sandbox.model import Backend, RunResult
from admission_adapters.tunnels.server import CA_FILE, Connection, TunnelServer, environment
from admission_adapters.tunnels.tunnel import Tunnel
from engine.documents.canonical import digest
from engine.drive import Steps, run
from engine.errors import StateError
from engine.flow import Answer, Context, Services, answer
from engine.model import Job, Mode, Permit, Result
from engine.points.network import NetworkLimits
from engine.points.registry import find
from engine.points.sandbox import EgressLimits, SandboxLimits, shell_words

_ALIAS = "tunnel"
"""What stands for the origin of a connection in its request; the id stands for the run."""


@dataclass(frozen=True, slots=True)
class ShellOrder:
    """A command as text. `hosts` are the exact hosts that it may ask for; without any it has no way out."""

    text: str
    hosts: tuple[str, ...] = ()
    profile: str = "shell"


@dataclass(frozen=True, slots=True)
class ShellRun:
    """The answer of point `sandbox`, the result of the run, and its connections in order. None if nothing ran."""

    answer: Answer
    ended: RunResult | None
    connections: tuple[Connection, ...] = ()


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
        command = Command(shell_words(order.text), cancel=job.stop, **way_out)
        result, ended = run_command(permit, job.input_digest, SandboxLimits, command, backend, evidence)
        connections = () if server is None else tuple(server.connections)
        seen.append((ended, connections))
        return replace(result, facts={**result.facts, "connections": len(connections)})

    request = {"profile": order.profile, "shell": order.text, "egress": bool(order.hosts)}
    asked = yield from answer(find("sandbox"), request, Mode.ENFORCE, services, context, executor)
    ended, connections = seen[0] if seen else (None, ())
    return ShellRun(asked, ended, connections)


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
        asked = refused.decision.approval
        if asked is None or not _granted(services, asked.id):
            return refused
        return run(answer(point, request, Mode.ENFORCE, services, replace(own, approval=asked.id), tunnel))

    return TunnelServer(egress, NetworkLimits, decide)


def _granted(services: Services, approval: str) -> bool:
    """Whether a person has granted it; no, if the state cannot be read."""
    with suppress(StateError):
        row = services.store().approval(approval)
        return row is not None and row.state == "granted"
    return False
