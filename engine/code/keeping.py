"""What is kept of a run: code, result and failure log by digest, and what the engine saw of each artifact.

Code, results and logs are redacted before they are written (C62). A file is kept byte for byte, or not at all:
which ones may be kept is decided on. For how long is in the permit; without one nothing ran, and nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.artifact_store import ArtifactStore
from adapters.sandbox.hand import ExecutionGrant
from adapters.sandbox.model import Ended
from engine.canonical import canonical
from engine.record.patterns import is_secret
from engine.record.redaction import redact, redact_text
from engine.secret_forms import SecretForms
from engine.state.store import NewArtifactCheck, Store

_PIECE, _OVERLAP = 1 << 20, 1 << 16
"""Characters of a piece in which secrets are looked for, and of the next one that are in it too."""

_LAST_WORD = re.compile(r"\S{1,1024}\Z")

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

    def success(self, run: Executed, result: Mapping[str, Any], admitted: Collection[str]) -> dict[str, Any]:
        """Keep the code, its validated result and the admitted artifacts; their digests. Raises WorkError."""
        return {
            "code": self._text(run, run.code),
            "result": self._json(run, result),
            "artifacts": [
                {"path": redact_text(one.path), "bytes": len(one.data), "sha256": one.sha256, "stored": stored}
                for one in run.ended.artifacts
                if one.sha256 in admitted and (stored := self._put(run, one.data))
            ],
        }

    def failure(self, run: Executed, reason: str, root_cause: str) -> dict[str, Any]:
        """Keep the code and a log of how it failed, for whoever looks for the cause (A88). Raises WorkError."""
        log = {
            "stop_reason": reason,
            **run.facts,
            "root_cause": root_cause,
            "decision_id": run.decision_id,
            **_logged("stdout", run.stdout, cut=run.ended.stdout_bytes > len(run.ended.stdout)),
            **_logged("stderr", run.stderr, cut=run.ended.stderr_bytes > len(run.ended.stderr)),
        }
        return {"code": self._text(run, run.code), "log": self._json(run, log)}

    def _text(self, run: Executed, text: str) -> str:
        return self._put(run, redact_text(text).encode("utf-8", "replace"))

    def _json(self, run: Executed, value: Any) -> str:
        return self._put(run, canonical(redact(value)[0]))

    def _put(self, run: Executed, data: bytes) -> str:
        return self.store.put(data, self.now, run.grant.retention_days)


def _logged(name: str, text: str, *, cut: bool) -> dict[str, Any]:
    """A stream of a failure log without its secrets; the last word of one that was cut could be half of one."""
    clean = redact_text(_LAST_WORD.sub("", text) if cut else text)
    return {name: clean[:LOG_CHARACTERS], f"{name}_cut": cut or len(clean) > LOG_CHARACTERS}


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


def not_kept(run: Executed, admitted: Collection[str], reason: str) -> list[dict[str, str]]:
    """Every file that the program left and that is not kept, and one word why: the reason of those not admitted."""
    left = [(one.path, reason) for one in run.ended.artifacts if one.sha256 not in admitted]
    left += [(one.path, one.reason) for one in run.ended.refused_artifacts]
    return [{"name": redact_text(path), "reason": why} for path, why in left]


def files_of(run: Executed, forms: SecretForms) -> list[dict[str, Any]]:
    """What a decision on the files has to know."""
    return [
        {"sha256": one.sha256, "bytes": len(one.data), "secret": holds_secret(one.data, forms)}
        for one in run.ended.artifacts
    ]


def holds_secret(data: bytes, forms: SecretForms) -> bool:
    """Whether a key, token or password stands in the bytes of a file, as text of one or more bytes a character.

    What is compressed or enciphered is not looked into.
    """
    texts = [data.decode("utf-8", "replace")]
    if b"\0" in data:
        texts.append(data.replace(b"\0", b"").decode("latin-1"))
    return any(is_secret(piece, forms) for text in texts for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """All of a text in pieces that overlap, so that other threads have their turn; cut at blanks where it has any."""
    start = 0
    while True:
        end = start + _PIECE
        yield text[start:end]
        if end >= len(text):
            return
        start = end - _OVERLAP
        blank = text.find(" ", start, start + _OVERLAP // 2)
        start = start if blank < 0 else blank
