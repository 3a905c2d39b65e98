"""The engine: settings in, decisions out. The front doors for callers that block and for event loops."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from admission_adapters.files.artifacts import ArtifactDirectory
from admission_adapters.tools.registry import ToolRegistry
from engine.adapter_admissions import adapter_request
from engine.admitted_sources import noting, source_request
from engine.assembly import Activated, Status
from engine.drive import WAVE, ended, run, run_all, run_all_async, run_async
from engine.errors import EngineError, RecordError
from engine.flow import Answer, Context, checked
from engine.idempotency import answer_once
from engine.model import Mode, Permit, Result
from engine.opa.supervisor import Supervisor
from engine.points.registry import find
from engine.record.chains import chain_folders
from engine.record.retention import RETENTION_POINT, RetentionOrder, begin
from engine.steps import own_thread
from engine.verbs import Verbs
from engine.work import Executor, Job

if TYPE_CHECKING:
    from admission_adapters.environments.session import AsyncEnvironmentSession, EnvironmentSession
    from engine.administration.act import Administered
    from engine.code.repair import Repair, RepairAsync
    from engine.code.result import CodeRun
    from engine.code.running import RunWatcher
    from engine.completing import Completion, Prompt
    from engine.episodes.actors import Actor
    from engine.episodes.definition import EpisodeDefinition
    from engine.episodes.result import Episode
    from engine.exporting import Exported
    from engine.fetching import Fetched, FetchOrder
    from engine.memory import Memory, NewEntry
    from engine.provisioning import Provisioned
    from engine.state.store import Store

T = TypeVar("T")

_UNNAMED = Context()


class Engine(Verbs):
    """Decides, in process, for callers that block. A context manager; threads may share it.

    OPA and the record live as long as it does.

        with Engine(Settings()) as engine:
            answer = engine.check("source", {"path": "bundle/", "digest": None})
    """

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def check(self, point: str, request: Any, context: Context = _UNNAMED) -> Answer:
        """A dry run: gather, decide, record as `check`. Nothing is enforced and nothing runs."""
        return run(self._steps(point, request, Mode.CHECK, context, None))

    def decide(self, point: str, request: Any, executor: Executor | None = None, context: Context = _UNNAMED) -> Answer:
        """The real thing. With `executor`, approved work runs under the permit after the record is durable."""
        return run(self._steps(point, request, Mode.ENFORCE, context, executor))

    def decide_many(
        self,
        point: str,
        requests: Sequence[Any],
        context: Context | Sequence[Context] = _UNNAMED,
        mode: Mode = Mode.ENFORCE,
    ) -> list[Answer]:
        """Decide many requests of one point side by side: one question to OPA, each with its own record.

        `context` is that of all requests, or one for each.
        """
        pairs = _with_contexts(requests, context)
        return run_all([self._steps(point, request, mode, own, None) for request, own in pairs])

    def decide_each(
        self,
        point: str,
        requests: Iterable[Any],
        context: Context | Iterable[Context] = _UNNAMED,
        mode: Mode = Mode.ENFORCE,
    ) -> Iterator[Answer]:
        """`decide_many` for any number of requests: yields the answers in order, and keeps a batch of them in memory.

        Requests are read and decided as answers are taken, 256 at a time.
        """
        pairs = _with_contexts(requests, context)
        while batch := [*islice(pairs, WAVE)]:
            yield from run_all([self._steps(point, request, mode, own, None) for request, own in batch])

    def admit(self, path: Path, into: Path, digest: str | None = None, context: Context = _UNNAMED) -> Answer:
        """Decide a source bundle and, on an allow, copy exactly the admitted records below `into`.

        `digest` is the bundle's digest from an earlier check; null in the request if there was none.
        The records are in `into/<bundle digest in hex>/<record id>`, all of them or none. The engine notes digests of
        their text, with which point `export` compares samples.
        """
        artifacts = ArtifactDirectory(Path(into))

        def stage(permit: Permit, job: Job) -> Result:
            return artifacts.stage_source(permit, job.input_digest, job.opened.content)

        request = source_request(Path(path), digest, Path(into))
        return self.decide("source", request, noting(self._open_store, stage), context)

    def fetch(self, order: FetchOrder, context: Context = _UNNAMED) -> Fetched:
        """Fetch material over HTTPS into a new source bundle: decide, transfer, decide again, record.

        Naming a host in the order enables the fetch; `engine check` then asks for what only a person can state.
        Raises GatherError if there is something at `order.into`.
        """
        return run(self._fetch_steps(order, context))

    def complete(self, prompt: Prompt, context: Context = _UNNAMED) -> Completion:
        """Ask the remote model: decide, send, and again after an error that may pass; each attempt is recorded.

        Always returns: with the text and what it cost, or with a stable word for what went wrong. Raises GatherError
        only for a file of variables that cannot be read.
        """
        return run(self._complete_steps(prompt, context))

    def build(self, path: Path, into: Path, digest: str | None = None, context: Context = _UNNAMED) -> Answer:
        """Decide a source bundle and the environment that it names and, on two allows, build it below `into`.

        The environment is the folder `into/<name>`, as a whole or not at all. Returns the answer that stopped
        it, or the one of point `environment`, whose result has the digest of the database.
        """
        return run(self._build_steps(path, into, digest, context))

    def open_environment(
        self, folder: Path, context: Context = _UNNAMED, *, policy: str | None = None, profile: str | None = None
    ) -> AbstractContextManager[EnvironmentSession]:
        """A built environment and its tools behind a gate, open within the block.

        `policy` and `profile` are names from policy/tools.yaml; without them nothing may be called. Raises WorkError,
        GatherError.
        """
        from admission_adapters.environments.session import open_environment

        return open_environment(self, Path(folder), context, policy, profile)

    def admit_environment(self, path: Path, context: Context = _UNNAMED) -> Answer:
        """Decide a source bundle as the source of its environment, so that adapter manifests may name it.

        The result states the environment and its `source_policy_hash`; the engine knows it as long as it is open.
        """
        admit = noting(self._open_store, self._adapters.admit_source)
        return self.decide("source", {"path": str(path), "digest": None}, admit, context)

    def admit_adapter(self, manifest: Any, registry: ToolRegistry, context: Context = _UNNAMED) -> Answer:
        """Decide an adapter's manifest against this registry; on an allow, its envelopes can be decided.

        `manifest` is an object as in docs/adapters.md. Needs `enable_mcp_adapter=True`.
        """
        note = partial(self._adapters.admit_manifest, manifest=manifest)
        return self.decide("adapter", adapter_request(manifest, registry), note, context)

    def retain(self, keep_days: int, reason: str | None = None, context: Context = _UNNAMED) -> Answer:
        """Decide how long the record is kept and, on an allow, remove whole segments that are older, of all chains.

        The record names who removed them, and `reason`. Waits for engines that use other chains; the result
        lists what was `removed` from each chain, and chains that are still `waiting` for their engine.
        """
        from engine.points.record import MOST_DAYS, ObservationLimits

        log, now = self._log, self.opened.clock()

        def shorten(permit: Permit, job: Job) -> Result:
            days = permit.demand(RETENTION_POINT, job.input_digest, ObservationLimits).retention_days
            who, time = context.caller.principal, int(now.timestamp())
            chains = chain_folders(self.settings.state)  # one that is added later has nothing old
            done = log.retain(RetentionOrder(permit.decision_id, days, time, who, reason))
            removed = [{"chain": chain, **asdict(old)} for chain, old in sorted(done.items()) if old is not None]
            waiting = [chain for chain in chains if chain not in done]
            return Result("removed" if removed else "nothing_old", {"removed": removed, "waiting": waiting})

        if 0 <= keep_days <= MOST_DAYS:
            with suppress(RecordError):  # then the decision cannot be recorded either
                begin(log.usable_log(), keep_days, now)
        return self.decide(RETENTION_POINT, {"detail": "decisions", "retention_days": keep_days}, shorten, context)

    def run_code(self, request: Any, context: Context = _UNNAMED, watch: RunWatcher | None = None) -> CodeRun:
        """Run generated code: decide, run in a sandbox, validate, record. `request` is a CodeRunRequest as JSON.

        Always returns a result with the reason why it stopped. `watch` cancels the run and is notified of its phases.
        """
        return run(self._code_steps(request, context, watch))

    def repair_code(
        self, request: Any, repair: Repair, context: Context = _UNNAMED, watch: RunWatcher | None = None
    ) -> CodeRun:
        """`run_code`, repeated with each action that `repair` returns for rejected code, as often as policy allows."""
        from engine.code.repair import repaired

        own = replace(checked(context), idempotency_key=None)  # a key is for one run
        return repaired(lambda document: self.run_code(document, own, watch), request, repair)

    def episode(
        self,
        definition: EpisodeDefinition,
        actors: Mapping[str, Actor] | None = None,
        episode: str | None = None,
        context: Context = _UNNAMED,
    ) -> Episode:
        """Run an episode: each turn is decided before the actor is called and after it replied, and recorded.

        `actors` by id replace scripts. `episode` is its id; a recorded one resumes where it stopped, or
        returns its recorded end. Raises GatherError, or WorkError if it is already running.
        """
        (ended,) = self.episodes([(episode, definition)], actors, context)
        return ended

    def episodes(
        self,
        requests: Sequence[tuple[str | None, EpisodeDefinition]],
        actors: Mapping[str, Actor] | None = None,
        context: Context = _UNNAMED,
    ) -> list[Episode]:
        """`episode` for many side by side: their questions go to OPA together."""
        with ExitStack() as claims:
            return run_all(self._episode_steps(requests, actors or {}, context, claims))

    def provision(self, specification: str, context: Context = _UNNAMED) -> Provisioned:
        """Create an agent from the JSON text of a NewAgentProvisioning, once a person has approved exactly this one.

        Always returns: with the id of the agent; with a confirm, whose approval `context` then brings; or with the
        reason, which `raise_for_error` raises, such as MaxAgentsExceededError.
        """
        from engine.provisioning import provisioned

        return provisioned(self.decide("provisioning", {"specification": specification}, context=context))

    def export(self, samples: Path, into: Path, context: Context = _UNNAMED) -> Exported:
        """Export samples, one JSON object per line, into the new file `into`: JSON lines, or Parquet by its suffix.

        Each sample is compared with the sources that this engine has admitted. The file appears when all are allowed.
        Raises GatherError for a file that cannot be read or written.
        """
        return run(self._export_steps(samples, into, context))

    def remember(self, new: NewEntry, context: Context) -> Memory:
        """Decide on a new entry of memory and, on an allow, store it for the caller of the context."""
        return run(self._write_steps(new, context))

    def recall(self, id_: str | None, context: Context) -> Memory:
        """Read the entry with this id, or with None the newest entries of the caller; only the owner may."""
        return run(self._read_steps(id_, context))

    def forget(self, id_: str, context: Context) -> Memory:
        """Remove an entry; only the owner may."""
        return run(self._read_steps(id_, context, forget=True))

    def settle(self, decision_id: str, amounts: Mapping[str, int]) -> None:
        """Report what an allowed request really used of its budgets, such as `{"source.run": 0}`. Raises StateError."""
        self._open_store().settle(decision_id, amounts)

    def activate(self, by: Context = _UNNAMED, reason: str | None = None) -> Activated:
        """Build the policy again from its folders and switch to it, all or nothing.

        Recorded with who and why. Raises PolicyError or DecideError, and then the policy that was served before
        is served on.
        """
        return self._activate(by, reason)

    def store(self) -> Store:
        """Budgets, approvals, tokens. Raises StateError."""
        return self._open_store()

    def administer(self, request: Any, by: Context) -> Administered:
        """Perform an administrative act: decide, record, act. `request` is an AdministrationRequest as JSON."""
        return run(self._administer_steps(request, by))

    def status(self) -> Status:
        """Whether each part can do its work now."""
        return self._status()


class AsyncEngine(Verbs):
    """The same verbs for an event loop, which is never blocked. An async context manager.

    async with AsyncEngine(Settings()) as engine:
        answer = await engine.decide("license", {...})

    A caller that is cancelled leaves its request to be decided and recorded all the same.
    """

    async def __aenter__(self) -> Self:
        opening = own_thread(self._enter)
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread goes on; close what it opens
            await ended(opening)
            await ended(own_thread(self._close))
            raise
        return self

    def _enter(self) -> None:
        self._open()
        with suppress(EngineError):  # what needs the state is refused until it can be opened
            self._open_store()

    async def __aexit__(self, *_: object) -> None:
        try:
            self.executors.stop_waiting()
            await asyncio.gather(*self._walking, return_exceptions=True)
            if isinstance(self._supervisor, Supervisor):
                await self._supervisor.leave()
        finally:
            await asyncio.to_thread(self._close)

    async def check(self, point: str, request: Any, context: Context = _UNNAMED) -> Answer:
        """`Engine.check`."""
        return await self._walk(run_async(self._steps(point, request, Mode.CHECK, context, None)))

    async def decide(
        self, point: str, request: Any, executor: Executor | None = None, context: Context = _UNNAMED
    ) -> Answer:
        """`Engine.decide`; an executor runs in a thread."""
        return await self._walk(run_async(self._steps(point, request, Mode.ENFORCE, context, executor)))

    async def decide_many(
        self,
        point: str,
        requests: Sequence[Any],
        context: Context | Sequence[Context] = _UNNAMED,
        mode: Mode = Mode.ENFORCE,
    ) -> list[Answer]:
        """`Engine.decide_many`."""
        pairs = _with_contexts(requests, context)
        return await self._walk(run_all_async([self._steps(point, request, mode, own, None) for request, own in pairs]))

    async def decide_each(
        self,
        point: str,
        requests: Iterable[Any],
        context: Context | Iterable[Context] = _UNNAMED,
        mode: Mode = Mode.ENFORCE,
    ) -> AsyncIterator[Answer]:
        """`Engine.decide_each`."""
        pairs = _with_contexts(requests, context)
        while batch := [*islice(pairs, WAVE)]:
            steps = [self._steps(point, request, mode, own, None) for request, own in batch]
            for answer in await self._walk(run_all_async(steps)):
                yield answer

    async def decide_upload(self, path: Path, context: Context = _UNNAMED, mode: Mode = Mode.ENFORCE) -> Answer:
        """Decide a source bundle that this process itself stored at `path`, which may be outside the root folder."""
        parts = replace(self.opened, gather_context=replace(self.opened.gather_context, root=path.parent))
        request = {"path": path.name, "digest": None}
        steps = answer_once(find("source"), request, mode, parts, context, body=lambda: _digest_of(path))
        return await self._walk(run_async(steps))

    async def fetch(self, order: FetchOrder, context: Context = _UNNAMED) -> Fetched:
        """`Engine.fetch`; transfers run in threads of their own."""
        return await self._walk(run_async(self._fetch_steps(order, context)))

    async def complete(self, prompt: Prompt, context: Context = _UNNAMED) -> Completion:
        """`Engine.complete`; requests and waits are in threads of their own."""
        return await self._walk(run_async(self._complete_steps(prompt, context)))

    async def build(self, path: Path, into: Path, digest: str | None = None, context: Context = _UNNAMED) -> Answer:
        """`Engine.build`."""
        return await self._walk(run_async(self._build_steps(path, into, digest, context)))

    def open_environment(
        self, folder: Path, context: Context = _UNNAMED, *, policy: str | None = None, profile: str | None = None
    ) -> AbstractAsyncContextManager[AsyncEnvironmentSession]:
        """`Engine.open_environment`."""
        from admission_adapters.environments.session import open_environment_async

        return open_environment_async(self, Path(folder), context, policy, profile)

    async def export(self, samples: Path, into: Path, context: Context = _UNNAMED) -> Exported:
        """`Engine.export`."""
        return await self._walk(run_async(self._export_steps(samples, into, context)))

    async def remember(self, new: NewEntry, context: Context) -> Memory:
        """`Engine.remember`."""
        return await self._walk(run_async(self._write_steps(new, context)))

    async def recall(self, id_: str | None, context: Context) -> Memory:
        """`Engine.recall`."""
        return await self._walk(run_async(self._read_steps(id_, context)))

    async def forget(self, id_: str, context: Context) -> Memory:
        """`Engine.forget`."""
        return await self._walk(run_async(self._read_steps(id_, context, forget=True)))

    async def admit_environment(self, path: Path, context: Context = _UNNAMED) -> Answer:
        """`Engine.admit_environment`."""
        admit = noting(self._open_store, self._adapters.admit_source)
        return await self.decide("source", {"path": str(path), "digest": None}, admit, context)

    async def admit_adapter(self, manifest: Any, registry: ToolRegistry, context: Context = _UNNAMED) -> Answer:
        """`Engine.admit_adapter`."""
        note = partial(self._adapters.admit_manifest, manifest=manifest)
        return await self.decide("adapter", adapter_request(manifest, registry), note, context)

    async def run_code(self, request: Any, context: Context = _UNNAMED, watch: RunWatcher | None = None) -> CodeRun:
        """`Engine.run_code`; programs run in threads of their own."""
        return await self._walk(run_async(self._code_steps(request, context, watch)))

    async def repair_code(
        self, request: Any, repair: RepairAsync, context: Context = _UNNAMED, watch: RunWatcher | None = None
    ) -> CodeRun:
        """`Engine.repair_code`."""
        from engine.code.repair import repaired_async

        own = replace(context, idempotency_key=None)
        return await repaired_async(lambda document: self.run_code(document, own, watch), request, repair)

    async def episode(
        self,
        definition: EpisodeDefinition,
        actors: Mapping[str, Actor] | None = None,
        episode: str | None = None,
        context: Context = _UNNAMED,
    ) -> Episode:
        """`Engine.episode`; actors reply in threads of their own."""

        async def whole() -> Episode:
            with ExitStack() as claims:
                requests = [(episode, definition)]
                (steps,) = await asyncio.to_thread(self._episode_steps, requests, actors or {}, context, claims)
                return await run_async(steps)

        return await self._walk(whole())

    async def provision(self, specification: str, context: Context = _UNNAMED) -> Provisioned:
        """`Engine.provision`."""
        from engine.provisioning import provisioned

        return provisioned(await self.decide("provisioning", {"specification": specification}, context=context))

    async def _walk(self, path: Coroutine[Any, Any, T]) -> T:
        """Run a path to its end, even if the caller is cancelled, so that it releases or records what it reserved."""
        walking = asyncio.get_running_loop().create_task(path)
        self._walking.add(walking)
        walking.add_done_callback(self._walking.discard)
        return await asyncio.shield(walking)

    async def settle(self, decision_id: str, amounts: Mapping[str, int]) -> None:
        """`Engine.settle`."""
        await asyncio.to_thread(lambda: self._open_store().settle(decision_id, amounts))

    async def activate(self, by: Context = _UNNAMED, reason: str | None = None) -> Activated:
        """`Engine.activate`; requests go on meanwhile."""
        return await asyncio.to_thread(self._activate, by, reason)

    async def administer(self, request: Any, by: Context) -> Administered:
        """`Engine.administer`."""
        return await self._walk(run_async(self._administer_steps(request, by)))

    def store(self) -> Store:
        """Budgets, approvals, tokens. Never waits; raises StateError while the state is not open."""
        return self._store.now()

    async def status(self) -> Status:
        """`Engine.status`."""
        return await own_thread(self._status)  # threads of a pool may all wait for the state


def _with_contexts(requests: Iterable[Any], context: Any) -> Iterator[tuple[Any, Context]]:
    for_all = isinstance(context, Context | Mapping | str) or not isinstance(context, Iterable)
    return zip(requests, repeat(context), strict=False) if for_all else zip(requests, context, strict=True)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
