"""The policy of a run, as it travels to every worker: the files of a release, packed, and their digest."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.documents.canonical import digest
from engine.engine import Engine
from engine.errors import DecideError, EngineError
from engine.model import Revisions
from engine.opa.packed import pack, unpacked
from engine.policy_bundle.release import Authorship, Release, write_release
from engine.policy_bundle.release_folder import read
from engine.policy_bundle.signing import public_key
from engine.settings import Settings

_POLICY = "policy"
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""When an unreleased policy was packed is no part of it: equal policies have equal digests."""


@dataclass(frozen=True, slots=True)
class SentPolicy:
    """The packed policy, its digest and revisions, and the public key (PEM) of a signed one."""

    packed: bytes
    digest: str
    revisions: Revisions
    key: bytes | None

    @classmethod
    def of(cls, engine: Engine) -> SentPolicy:
        """The policy that an engine serves. Raises EngineError if it serves none."""
        policy, settings, key = engine.policy, engine.settings, None
        if policy is None:
            raise getattr(engine.opa, "fault", None) or EngineError("no policy is served", remedy="run `engine doctor`")
        if isinstance(policy, Release):
            files = policy.files
            key = None if settings.release_key is None else public_key(settings.release_key)
        else:
            with tempfile.TemporaryDirectory(prefix="admission-policy-") as folder:
                write_release(policy, Path(folder) / _POLICY, 1, Authorship("bulk run", _NO_TIME))
                files = read(Path(folder) / _POLICY).files
        packed = pack(files)
        return cls(packed, digest(packed), policy.revisions, key)

    def unpack(self, folder: Path) -> Settings:
        """Settings of an engine in this private folder that serves exactly this policy. Raises EngineError, OSError."""
        if digest(self.packed) != self.digest:
            raise self.refused()
        release, key = folder / _POLICY, None if self.key is None else folder / "public.pem"
        release.mkdir()
        for name, data in unpacked(self.packed, _POLICY).items():
            (release / name).write_bytes(data)
        if key is not None and self.key is not None:
            key.write_bytes(self.key)
        return Settings(
            state=folder / "state",
            database=None,
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
