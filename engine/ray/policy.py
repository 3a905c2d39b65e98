"""The policy of a run, as it travels to every worker: the files of a release, and the digest of them all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.documents.canonical import canonical, digest
from engine.engine import Engine
from engine.errors import DecideError, EngineError
from engine.model import Revisions
from engine.policy_bundle.release import About, write_release
from engine.policy_bundle.release_folder import read
from engine.policy_bundle.signing import public_key
from engine.settings import Settings


@dataclass(frozen=True, slots=True)
class SentPolicy:
    """The files of a policy by name, the public key (PEM) of a signed one, and what a worker must find it to be."""

    files: Mapping[str, bytes]
    key: bytes | None
    digest: str
    revisions: Revisions

    @classmethod
    def of(cls, engine: Engine) -> SentPolicy:
        """The policy that an engine serves. Raises EngineError if it serves none."""
        policy, settings = engine.policy, engine.settings
        if policy is None:
            raise getattr(engine.opa, "fault", None) or EngineError("no policy is served", remedy="run `engine doctor`")
        if settings.release is not None:
            files = read(settings.release).files
            key = None if settings.release_key is None else public_key(settings.release_key)
        else:
            with tempfile.TemporaryDirectory(prefix="admission-policy-") as folder:
                about = About(sequence=1, created_at=datetime.now(UTC), author="bulk run")
                write_release(policy, Path(folder) / "policy", about)
                files, key = read(Path(folder) / "policy").files, None
        return cls(dict(files), key, _digest(files), policy.revisions)

    def unpack(self, folder: Path) -> Settings:
        """Settings of an engine in this private folder that serves exactly this policy. Raises DecideError."""
        if _digest(self.files) != self.digest:
            raise self.refused()
        release, key = folder / "policy", None if self.key is None else folder / "public.pem"
        release.mkdir()
        for name, data in self.files.items():
            (release / name).write_bytes(data)
        if key is not None and self.key is not None:
            key.write_bytes(self.key)
        return Settings(
            state=folder / "state",
            cache=folder / "cache",
            release=release,
            release_key=key,
            unsigned_release_for_development=key is None,
        )

    def refused(self) -> DecideError:
        """The error for a policy that is not the one that was sent."""
        return DecideError(
            "the policy of this worker is not the one that was sent: its digest differs",
            remedy="install the same version of the engine on every node, and start the run again",
            code="policy_stale",
        )


def _digest(files: Mapping[str, bytes]) -> str:
    return digest(canonical({name: digest(data) for name, data in files.items()}))
