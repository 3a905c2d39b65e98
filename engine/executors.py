"""What runs approved work: sandboxes, packages, fetches and the remote model, each opened when it is first needed."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from admission_adapters.episodes.transcripts import TranscriptFolder
from admission_adapters.files.artifacts import ArtifactDirectory
from admission_adapters.llm_provider import Provider
from admission_adapters.runner.resolver import Resolver
from engine.errors import GatherError
from engine.model import Boundary
from engine.secrets.patterns import know_key

if TYPE_CHECKING:
    from admission_adapters.fetch import Fetcher
    from admission_adapters.llm import RemoteModel
    from admission_adapters.sandbox.packages import Packages
    from engine.code.asking import Machine
    from engine.sandboxes.evidence import Sandboxes
    from engine.sandboxes.packages import PackageEnvironments
    from engine.settings import Settings


class Executors:
    """The executors of one engine. Threads may share it."""

    def __init__(self, settings: Settings, now: Callable[[], int], progress: Callable[[str, int, int], None]) -> None:
        """`now` is the engine's clock, in seconds since 1970 UTC."""
        self._settings, self._now, self._progress = settings, now, progress
        self._opening = threading.Lock()
        self._boundaries: tuple[Boundary, ...] | None = None
        self._sandboxes: Sandboxes | None = None
        self._environments: PackageEnvironments | None = None
        self._machine: Machine | None = None
        self._remote_model: RemoteModel | None = None
        self.transcripts = TranscriptFolder(settings.state / "episodes")
        self._provider: Provider | None = None
        if settings.remote_model:
            with suppress(GatherError):  # a file that cannot be read refuses only the remote model
                self._read_provider()
        self.resolver = Resolver()

    @cached_property
    def fetcher(self) -> Fetcher:
        """Fetches from admitted hosts."""
        from admission_adapters.fetch import Fetcher

        return Fetcher(self._settings.ca_file)

    def boundaries(self) -> tuple[Boundary, ...]:
        """Those that were proven on this machine for work without a sandbox."""
        if self._boundaries is None:
            with tempfile.TemporaryDirectory(prefix="admission-probe-") as folder:
                self._boundaries = (ArtifactDirectory.prove(Path(folder)),)
        return self._boundaries

    def sandboxes(self) -> Sandboxes:
        """The sandboxes of this machine, and what was proven of each."""
        from engine.sandboxes.evidence import Sandboxes  # most requests need none
        from engine.sandboxes.registry import registered

        with self._opening:
            if self._sandboxes is None:
                backends = partial(registered, self._settings.cache, self._settings.warm_sandboxes)
                self._sandboxes = Sandboxes(self._settings.state, self._now, backends, self._progress)
            return self._sandboxes

    def packages(self, name: str) -> Packages | None:
        """The package environment of this name, verified."""
        from admission_adapters.sandbox.packages import place
        from engine.sandboxes.packages import PackageEnvironments

        with self._opening:
            if self._environments is None:
                folder = partial(place, self._settings.cache)
                self._environments = PackageEnvironments(self._settings.state, folder, self._now)
            environments = self._environments
        return environments.find(name)

    def packages_tree(self, name: str) -> str | None:
        """The digest of the files of a package environment, verified."""
        found = self.packages(name)
        return None if found is None else found.tree

    def remote_model(self) -> RemoteModel:
        """The remote model of the variables, the only one that is given its key. Raises GatherError.

        The variables are read when the engine starts, and again as long as one is missing.
        """
        from admission_adapters.llm import RemoteModel

        with self._opening:
            model = self._remote_model
            if model is None or model.provider.settings.missing:
                provider = self._provider if model is None else None  # read once: the file may be a pipe
                if provider is None or provider.settings.missing:
                    provider = self._read_provider()
                model = self._remote_model = RemoteModel(provider, self._settings.ca_file)
            return model

    def _read_provider(self) -> Provider:
        """Read the variables of the remote model; its key is a secret in all texts from now on. Raises GatherError."""
        provider = self._provider = Provider.read(file=self._settings.env_file)
        if provider.key is not None:
            provider.key.register(know_key)
        return provider

    def machine(self) -> Machine:
        """What runs of generated code need of this machine; its `running` knows those in progress."""
        from admission_adapters.files.artifact_store import ArtifactStore
        from engine.code.asking import Machine
        from engine.code.running import Running

        sandboxes = self.sandboxes()
        with self._opening:
            if self._machine is None:
                store = ArtifactStore(self._settings.state / "artifacts")
                running = Running(self._settings.code_runs, self._settings.code_waiting)
                self._machine = Machine(sandboxes.backend, store, running, self.packages)
            return self._machine

    def stop_waiting(self) -> None:
        """Refuse the runs of code that wait for their turn, because the engine stops."""
        if self._machine is not None:
            self._machine.running.close()

    def close(self) -> None:
        """End what was opened, each part even if others fail."""
        with ExitStack() as parts:
            parts.callback(self.transcripts.close)
            if self._sandboxes is not None:
                parts.callback(self._sandboxes.close)
            parts.callback(self.resolver.close)
