"""What the harnesses and backends of this machine can do: tried here, never believed.

A harness is started in its sandbox and has to call a tool that it never saw before; its own report alone counts for
nothing that can be tried. A backend enforces what the probe of its sandbox found.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from admission_adapters.runner.harness import Harness
from admission_adapters.runner.relay import Relay
from admission_adapters.sandbox.command import Command, run_command
from admission_adapters.sandbox.model import Backend
from engine.errors import EngineError
from engine.flow import Services
from engine.model import Boundary, Job, Permit, Result
from engine.points import Probed
from engine.points.runner_capability import FLAGS
from engine.points.sandbox import SandboxLimits
from engine.runner.asking import Decisions, StoppedError
from engine.runner.invariants import demand
from engine.runner.servers import relay_of, relayed
from engine.work import Executor

RETRY_SECONDS = 60.0
"""After a probe that failed; one that was late is made again at the next run."""

KEPT_SECONDS = 86_400.0

PROBE_SECONDS = 15.0
"""For a harness to start and to call one tool."""

JAIL = ("files", "filesystem_jail")
"""The boundary of a sandbox that is a file system jail, and its name in the proof of a backend."""


def capabilities_of(reported: Mapping[str, Any]) -> dict[str, bool]:
    """What a harness reports that it can do. Raises InvariantError for anything but the flags as booleans."""
    found = reported.get("capabilities")
    valid = (
        isinstance(found, dict) and found.keys() == {*FLAGS} and all(isinstance(one, bool) for one in found.values())
    )
    demand(
        valid, "the harness reports no capabilities", f"answer `initialize` with {' and '.join(FLAGS)}, true or false"
    )
    return dict(found or {})


@dataclass(slots=True)
class _Trial:
    """Listens to a harness that is probed: it has to call the tool of this trial, with its word."""

    name: str = field(default_factory=lambda: f"probe_{secrets.token_hex(8)}")
    word: str = field(default_factory=lambda: secrets.token_hex(16))
    reported: dict[str, bool] = field(default_factory=dict)
    called_it: bool = False
    advertised_it: bool = False

    def tool(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        return {"name": self.name, "description": "Call this tool once", "inputSchema": schema}

    def task(self) -> dict[str, Any]:
        tools = [self.tool()]
        return {"probe": {"word": self.word}, "messages": [], "tools": tools, "model": "", "harness_kwargs": {}}

    def started(self, reported: dict[str, Any]) -> None:
        self.reported = capabilities_of(reported)

    def advertised(self, tools: Any) -> None:
        self.advertised_it = tools == [self.name]

    def called(self, name: Any, arguments: Any) -> tuple[str, bool]:
        self.called_it = self.called_it or (name, arguments) == (self.name, {"word": self.word})
        return "done", False

    def updated(self, update: dict[str, Any]) -> None:
        pass

    def capabilities(self) -> dict[str, bool]:
        """What it reports, of which `toolCalls` had to be shown."""
        works = self.called_it and self.advertised_it
        return {**self.reported, "toolCalls": self.reported["toolCalls"] and works}


class Harnesses:
    """The harnesses of the served policy; threads may share it."""

    def __init__(self, backend: Callable[[str], Backend], variables: Mapping[str, str]) -> None:
        """`variables` are set for every harness."""
        self._backend, self._variables = backend, variables
        self._known: dict[str, tuple[Any, float, Probed | None]] = {}
        self._lock = threading.Lock()

    def probed(self, name: str, decisions: Decisions) -> Probed | None:
        """What this harness can do: `probed`, else `static` where its capabilities are assumed, else None."""
        services = decisions.services
        lookups = services.lookups
        row = lookups.harnesses.get(name)
        profile = next((one["profile"] for one in lookups.backends.values() if one.get("profile")), None)
        if row is None:
            return None
        asked = time.monotonic()
        with self._lock:  # one at a time: each takes a sandbox
            known = self._known.get(name)
            subject = (row["command"], row["custom_tools"], profile)
            if known is None or known[0] != subject or known[1] < asked:
                began = time.monotonic()
                found = self._try(row, profile, decisions) if row["command"] and profile else None
                ended = time.monotonic()
                failed = RETRY_SECONDS if ended < began + PROBE_SECONDS else 0  # for those that wait already
                known = self._known[name] = subject, ended + (failed if found is None else KEPT_SECONDS), found
        probed = known[2]
        if probed is None and row["assumed"]:
            probed = Probed(dict(row["assumed"]), "static")
        services.on_event("capabilities", {"harness": name, "source": "none" if probed is None else probed.source})
        return probed

    def _try(self, row: Mapping[str, Any], profile: str, decisions: Decisions) -> Probed | None:
        trial, command, relay = _Trial(), row["command"], None
        task = trial.task()
        if row["custom_tools"] == "mcp":
            try:
                relay = relay_of(decisions, profile, [trial.tool()], trial.called)
            except StoppedError:
                return None
            task = relayed(task)
        talk = Harness(task, trial)
        late = threading.Timer(PROBE_SECONDS, talk.over.set)
        late.start()
        try:
            executor = self.executor(
                decisions.services, self.command_of(command, talk, relay), lambda: talk.result is not None
            )
            decisions.demand("sandbox", {"profile": profile, "command": command}, executor)
        except StoppedError:
            return None
        finally:
            late.cancel()
        return Probed(trial.capabilities(), "probed") if talk.result is not None else None

    def command_of(self, command: Sequence[str], talk: Harness, relay: Relay | None) -> Command:
        """The command of a harness with which `talk` talks."""
        files = {} if relay is None else relay.files
        return Command(
            tuple(command), dialogue=talk, cancel=talk.over, environment=self._variables, files=files, relay=relay
        )

    def executor(self, services: Services, command: Command, finished: Callable[[], bool]) -> Executor:
        """The executor of a harness or an MCP server: its process in the sandbox of its permit."""
        world = services.gather_context

        def execute(permit: Permit, job: Job) -> Result:
            backend = permit.demand("sandbox", job.input_digest, SandboxLimits).backend
            evidence = world.sandbox_facts(backend, None)
            over = command.cancel or threading.Event()
            job.stop.then(over.set)
            try:
                result, _ = run_command(permit, job.input_digest, command, self._backend, evidence)
            finally:
                job.stop.forget(over.set)
            status = "finished" if finished() else "run_failed"
            return Result(status, {**result.facts, "sandbox": result.status})

        return execute

    def server(self, services: Services, command: Command) -> Executor:
        """The executor of an MCP server, which does not end by itself."""
        return self.executor(services, command, lambda: command.cancel is not None and command.cancel.is_set())

    def boundaries(self, services: Services) -> tuple[Boundary, ...]:
        """The boundaries that the backends of this machine were shown to enforce."""
        found = []
        with services.policy() as serving:
            seconds, backends = serving.lookups.probe_seconds, serving.lookups.backends
            sandboxes = {
                name: serving.backend_of(row["profile"], None, None)
                for name, row in backends.items()
                if row.get("profile")
            }
        for name, sandbox in sandboxes.items():
            rows = () if sandbox is None else services.gather_context.sandbox_facts(sandbox, seconds).boundaries
            found += [
                Boundary(backend=name, boundary=JAIL[1], kind=row.kind, enforced=row.enforced, evidence=row.evidence)
                for row in rows
                if row.boundary == JAIL[0]
            ]
        return tuple(found)

    def published(self, decisions: Decisions) -> dict[str, Any]:
        """Every harness of the policy with what it can do, its models and its connection modes: a copy."""
        rows = deepcopy({**decisions.services.lookups.harnesses})
        found = {}
        for name, row in sorted(rows.items()):
            try:
                probed = self.probed(name, decisions)
            except EngineError:
                probed = None
            found[name] = {
                "capabilities": {} if probed is None else dict(probed.capabilities),
                "source": "none" if probed is None else probed.source,
                "custom_tools": row["custom_tools"],
                "models": {provider: list(models) for provider, models in row["models"].items()},
                "connection_modes": list(row["connection_modes"]),
            }
        return found
