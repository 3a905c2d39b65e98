"""Stores the code, result and failure log of a run by digest, and remembers the checks of each artifact.

Code, results and logs are redacted before they are written (C62). A file is stored byte for byte or not at all;
the policy decides which. The permit states for how long; without a permit nothing ran, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from admission_adapters.cuts import printed
from admission_adapters.files.artifact_store import ArtifactStore
from admission_adapters.sandbox.executor import ExecutionGrant
from admission_adapters.sandbox.model import RunResult
from engine.documents.canonical import canonical
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import is_secret
from engine.secrets.redaction import redact, redact_text

_PIECE, _OVERLAP = 1 << 20, 1 << 16
"""Characters of a piece in which secrets are looked for, and of the next one that are in it too."""

LOG_CHARACTERS = 16_384
"""Of each stream in a failure log; the caps of a permit are usually lower."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One program that ran: its code, its grant and its result."""

    code: str
    payload: str
    grant: ExecutionGrant
    run_result: RunResult
    decision_id: str
    facts: Mapping[str, Any]

    @property
    def stdout(self) -> str:
        """Standard output as text; invalid UTF-8 is replaced (C30)."""
        return printed(self.run_result.stdout, self.run_result.stdout_bytes)

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return printed(self.run_result.stderr, self.run_result.stderr_bytes)

    @property
    def printed(self) -> dict[str, str]:
        """Both streams without secrets."""
        return {"stdout": redact_text(self.stdout), "stderr": redact_text(self.stderr)}


@dataclass(frozen=True, slots=True)
class Keeper:
    """Writes to one store, with one time of expiry."""

    store: ArtifactStore
    now: int

    def success(self, run: Executed, result: Mapping[str, Any], admitted: Collection[str]) -> dict[str, Any]:
        """Store the code, its validated result and the admitted artifacts; returns their digests. Raises WorkError."""
        return {
            "code": self._text(run, run.code),
            "result": self._json(run, result),
            "artifacts": [
                {
                    "path": redact_text(artifact.path),
                    "bytes": len(artifact.data),
                    "sha256": artifact.sha256,
                    "stored": stored,
                }
                for artifact in run.run_result.artifacts
                if artifact.sha256 in admitted and (stored := self._put(run, artifact.data))
            ],
        }

    def failure(self, run: Executed, reason: str, root_cause: str) -> dict[str, Any]:
        """Store the code and a log of its failure, for root cause analysis (A88). Raises WorkError."""
        printed, ended = run.printed, run.run_result
        log = {
            "stop_reason": reason,
            **run.facts,
            "root_cause": root_cause,
            "decision_id": run.decision_id,
            **_logged("stdout", printed["stdout"], cut=ended.stdout_bytes > len(ended.stdout)),
            **_logged("stderr", printed["stderr"], cut=ended.stderr_bytes > len(ended.stderr)),
        }
        return {"code": self._text(run, run.code), "log": self._json(run, log)}

    def _text(self, run: Executed, text: str) -> str:
        return self._put(run, redact_text(text).encode("utf-8", "replace"))

    def _json(self, run: Executed, value: Any) -> str:
        return self._put(run, canonical(redact(value)[0]))

    def _put(self, run: Executed, data: bytes) -> str:
        return self.store.put(data, self.now, run.grant.retention_days)


def _logged(name: str, text: str, *, cut: bool) -> dict[str, Any]:
    """A stream for the failure log."""
    return {name: text[:LOG_CHARACTERS], f"{name}_cut": cut or len(text) > LOG_CHARACTERS}


def not_kept(run: Executed, admitted: Collection[str], reason: str) -> list[dict[str, str]]:
    """Every file that the program left and that is not stored, with a reason; `reason` is for those not admitted."""
    left = [(artifact.path, reason) for artifact in run.run_result.artifacts if artifact.sha256 not in admitted]
    left += [(artifact.path, artifact.reason) for artifact in run.run_result.refused_artifacts]
    return [{"name": redact_text(path), "reason": why} for path, why in left]


def output_request(contract: str, ended: RunResult, forms: SecretForms) -> dict[str, Any]:
    """A request for a decision on what a run left: how it ended, its standard output, and its files."""
    measured = ("exit_code", "signal", "stdout_bytes", "stderr_bytes", "limit")
    run = {name: value for name in measured if (value := getattr(ended, name)) is not None}
    return {
        "contract": contract,
        "run": {"status": ended.status.value, **run},
        "stdout": ended.stdout.decode("utf-8", "replace"),
        "artifacts": [
            {"sha256": artifact.sha256, "bytes": len(artifact.data), "secret": holds_secret(artifact.data, forms)}
            for artifact in ended.artifacts
        ],
    }


def holds_secret(data: bytes, forms: SecretForms) -> bool:
    """Whether the bytes of a file contain a key, token or password, as text of one or more bytes per character.

    Compressed and encrypted content is not examined.
    """
    texts = [data.decode("utf-8", "replace")]
    if b"\0" in data:
        texts.append(data.replace(b"\0", b"").decode("latin-1"))
    return any(is_secret(piece, forms) for text in texts for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """A text in overlapping pieces, so that other threads get their turn; cut at blanks if possible."""
    start = 0
    while True:
        end = start + _PIECE
        yield text[start:end]
        if end >= len(text):
            return
        start = end - _OVERLAP
        blank = text.find(" ", start, start + _OVERLAP // 2)
        start = start if blank < 0 else blank
