"""What is kept of a run: code, result and failure log by digest, and what the engine saw of each artifact.

Everything is redacted before it is written (C62). For how long it is kept is in the permit; without a permit
nothing ran, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.artifact_store import ArtifactStore
from adapters.sandbox.hand import ExecutionGrant
from adapters.sandbox.model import Ended
from engine.canonical import canonical
from engine.record.redaction import redact, redact_text
from engine.state.store import NewArtifactCheck, Store

LOG_CHARACTERS = 16_384
"""Of each stream in a failure log; the caps of a permit are usually lower."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One program that ran: what it was, within what, and how it ended."""

    code: str
    payload: str
    grant: ExecutionGrant
    ended: Ended
    decision_id: str
    facts: Mapping[str, Any]

    @property
    def stdout(self) -> str:
        """Standard output as text; what is no UTF-8 is replaced (C30)."""
        return self.ended.stdout.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.ended.stderr.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Keeper:
    """Writes into one store, at one moment."""

    store: ArtifactStore
    now: int

    def success(self, run: Executed, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the code, its validated result and its artifacts; their digests. Raises WorkError."""
        return {
            "code": self._text(run, run.code),
            "result": self._json(run, result),
            "artifacts": self._artifacts(run),
        }

    def failure(self, run: Executed, reason: str, root_cause: str) -> dict[str, Any]:
        """Keep the code and a log of how it failed, for whoever looks for the cause (A88). Raises WorkError."""
        log = {
            "stop_reason": reason,
            **run.facts,
            "root_cause": root_cause,
            "decision_id": run.decision_id,
            "stdout": run.stdout[:LOG_CHARACTERS],
            "stderr": run.stderr[:LOG_CHARACTERS],
        }
        log |= {name: redact_text(log[name]) for name in ("stdout", "stderr")}
        return {"code": self._text(run, run.code), "log": self._json(run, log), "artifacts": self._artifacts(run)}

    def _text(self, run: Executed, text: str) -> str:
        return self._put(run, redact_text(text).encode("utf-8", "replace"))

    def _json(self, run: Executed, value: Any) -> str:
        return self._put(run, canonical(redact(value)[0]))

    def _artifacts(self, run: Executed) -> list[dict[str, Any]]:
        """Files that came out. Text is kept without its secrets, and has then another digest than what came out."""
        return [
            {
                "path": redact_text(one.path),
                "bytes": len(one.data),
                "sha256": one.sha256,
                "stored": self._put(run, _without_secrets(one.data)),
            }
            for one in run.ended.artifacts
        ]

    def _put(self, run: Executed, data: bytes) -> str:
        return self.store.put(data, self.now, run.grant.retention_days)


def remember_run(store: Store, run: Executed, *, passed: bool, now: int) -> None:
    """The sandbox check of the code; a file that it left was not run itself, and has none. Raises StateError."""
    store.add_artifact_check(
        NewArtifactCheck(run.grant.code_sha256, "sandbox", passed, run.grant.isolation, run.decision_id, now)
    )


def remember_validation(store: Store, run: Executed, decision_id: str, *, passed: bool, now: int) -> None:
    """The validation check of the code: whether what it printed is what it must be. Raises StateError."""
    store.add_artifact_check(
        NewArtifactCheck(run.grant.code_sha256, "validation", passed, run.grant.isolation, decision_id, now)
    )


def _without_secrets(data: bytes) -> bytes:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    return redact_text(text).encode("utf-8")
