"""The engine put together: settings, policy, OPA, record and clock make one object that answers."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, Self

from adapters.artifacts import ArtifactDirectory
from engine import __version__
from engine.errors import EngineError
from engine.flow import Answer, Parts, answer
from engine.model import Boundary, Mode, Permit, Result
from engine.opa.binary import find_binary
from engine.opa.server import Server
from engine.points import World
from engine.points.registry import POINTS, find
from engine.points.source import SourceLimits
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.sources import PolicySources
from engine.record.log import RecordLog
from engine.record.model import RecoveryRecord
from engine.settings import Settings
from engine.work import Hand, Job


class Engine:
    """Decides, in process. A context manager: OPA and the record live as long as it does.

    Nothing here raises for a policy, OPA or record that cannot be used: every request is then
    answered by a deny with the reserved code of that fault, and recorded where a record can be.

        with Engine(Settings()) as engine:
            answer = engine.check("source", {"path": "bundle/", "digest": None})
    """

    def __init__(
        self,
        settings: Settings,
        *,
        values: tuple[str, ...] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        """`values` are overrides `key=value` on policy/; `now` is the clock that rules see."""
        self.settings = settings
        self._values = values
        self._now = now
        self._new_id = new_id
        self._progress = progress
        self._boundaries: tuple[Boundary, ...] | None = None
        self.policy: PolicyBundle | None = None
        self.parts: Parts | None = None

    def __enter__(self) -> Self:
        self.opa, version = self._start_opa()
        try:
            self._log = self._open_log()
        except BaseException:
            self.opa.close()
            raise
        self.parts = Parts(
            opa=self.opa,
            catalogue=Catalogue(points={}) if self.policy is None else self.policy.catalogue,
            revisions=None if self.policy is None else self.policy.revisions,
            log=self._log,
            world=World(
                clock=lambda: int(self._now().timestamp()),
                boundaries=self._probe,
                read=self.settings.read,
                progress=self._progress,
            ),
            clock=lambda: datetime.now(UTC),
            new_id=self._new_id,
            versions={"engine": __version__} | ({} if version is None else {"opa": version}),
        )
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.opa.close()
        finally:
            self._log.close()

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """What a crash had left unfinished in the record, and was cut and kept when it was opened."""
        return self._log.recovered if isinstance(self._log, RecordLog) else ()

    def check(self, point: str, request: Any) -> Answer:
        """A dry run: gather, decide, record as `check`. Nothing is enforced and nothing runs."""
        return self._answer(point, request, Mode.CHECK, None)

    def decide(self, point: str, request: Any, hand: Hand | None = None) -> Answer:
        """The real thing. With `hand`, approved work runs under the permit after the record is durable."""
        return self._answer(point, request, Mode.ENFORCE, hand)

    def admit(self, path: Path, into: Path, digest: str | None = None) -> Answer:
        """Decide a source bundle and, on an allow, copy exactly the admitted records below `into`.

        `digest` is what an earlier check gave for the bundle; null in the request when there was none.
        The records stand in `into/<bundle digest in hex>/<record id>`, all of them or none.
        """
        artifacts = ArtifactDirectory(Path(into))

        def stage(permit: Permit, job: Job) -> Result:
            return artifacts.stage_source(permit, job.input_digest, SourceLimits, job.opened.content)

        return self.decide("source", {"path": str(path), "digest": digest}, stage)

    def _answer(self, point: str, request: Any, mode: Mode, hand: Hand | None) -> Answer:
        if self.parts is None:
            raise EngineError("the engine is not open", remedy="use it as `with Engine(settings) as engine:`")
        return answer(find(point), request, mode, self.parts, hand)

    def _start_opa(self) -> tuple[Server | _Down, str | None]:
        version = None
        try:
            binary = find_binary()
            version = binary.version
            sources = PolicySources(self.settings.rego, self.settings.policy, self.settings.recipe, self._values)
            self.policy = build(sources, frozenset(POINTS), binary, self.settings.cache)
            server = Server.start(
                binary, self.policy.rules.path, self.policy.values.path, self.policy.revisions, self.settings.opa
            )
        except EngineError as error:
            return _Down(error), version
        try:
            server.ready()
        except EngineError as error:
            server.close()
            return _Down(error), version
        except BaseException:
            server.close()
            raise
        return server, version

    def _open_log(self) -> RecordLog | _Down:
        try:
            return RecordLog.open(
                self.settings.state / "records",
                lock_seconds=self.settings.record_lock_seconds,
                clock=lambda: datetime.now(UTC),
            )
        except EngineError as error:
            return _Down(error)

    def _probe(self) -> tuple[Boundary, ...]:
        if self._boundaries is None:
            with tempfile.TemporaryDirectory(prefix="admission-probe-") as folder:
                self._boundaries = (ArtifactDirectory.prove(Path(folder)),)
        return self._boundaries


class _Down:
    """Stands where OPA or the record should be: whatever is asked of it, the fault is the answer."""

    def __init__(self, fault: EngineError) -> None:
        self._fault = fault

    def ask(self, _rule: str, _document: dict[str, Any]) -> NoReturn:
        raise self._fault

    def append(self, _body: Any, _events: tuple[Any, ...] = ()) -> NoReturn:
        raise self._fault

    def close(self) -> None:
        """Nothing was opened."""
