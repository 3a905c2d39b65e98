"""The words of a decision as closed types: outcome, finding, limits, decision, permit, result."""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from engine.errors import WorkError

ENGINE_CODES = "engine."
"""Prefix of codes that only the engine itself gives."""

RESERVED_CODES = frozenset({"policy_stale", "policy_unavailable", "unauthorized"})
"""Codes without that prefix that only the engine gives: H13, D05."""


def is_reserved(code: str) -> bool:
    """Whether only the engine itself may give this code; no policy may emit one."""
    return code.startswith(ENGINE_CODES) or code in RESERVED_CODES


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hex, without prefix."""

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A SHA-256 as written in decisions and records: `sha256:` and 64 hex digits."""


Line = Annotated[str, Field(max_length=4_096)]
"""A path, a label or a time in a request."""

Text = Annotated[str, Field(max_length=64 << 20)]
"""Content in a request: as much as OPA takes in one input, and 50 MB of media in base64."""

Object = Annotated[dict[str, Any], Field(max_length=10_000)]
"""A JSON object in a request whose keys are not ours; as many as `ReadLimits.request_keys`."""


class Pace(StrEnum):
    """How long a call takes, and on what; each has threads of its own, so that none waits behind another."""

    SHORT = "short"  # the state
    SLOW = "slow"  # reading files, asking the network, trying a sandbox
    BUNDLE = "bundle"  # reading a source bundle, which may have gigabytes
    HEAVY = "heavy"  # computing on a large request


class Model(BaseModel):
    """Base of every model: frozen, closed to unknown fields, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Outcome(StrEnum):
    """What may happen: a deny outranks a confirm, a confirm outranks an allow."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"


class Level(StrEnum):
    """What a finding does to the outcome."""

    DENY = "deny"
    CONFIRM = "confirm"
    WARN = "warn"


class Mode(StrEnum):
    """A dry run or the real thing; told apart in every decision and record."""

    CHECK = "check"
    ENFORCE = "enforce"


class Finding(Model):
    """A requirement that did not hold. `subject` is an id such as `records/contacts-2`, never content."""

    code: str
    level: Level
    message: str
    subject: str | None
    remedy: str


class Revisions(Model):
    """Digests of the rules and of the values that made a decision."""

    rules: Digest
    values: Digest


class Via(StrEnum):
    """How a caller came in; established by the engine, never stated by the caller."""

    PROCESS = "process"  # the engine is inside the caller's own process
    LOOPBACK = "loopback"  # a listener on this machine that asks for no token
    TOKEN = "token"  # noqa: S105  (a scoped one)
    SHARED_TOKEN = "shared_token"  # noqa: S105
    CERTIFICATE = "certificate"  # mutual TLS
    CONTROL = "control"  # the socket in the state folder
    NONE = "none"  # nothing that was asked for


class Caller(Model):
    """Who asks. `points` are those a token may ask about, `approves` those it may approve at; a token alone has any."""

    via: Via
    principal: str | None = None
    points: tuple[str, ...] = ()
    approves: tuple[str, ...] | None = None


class Gate(Model):
    """What guards this engine's own listener."""

    shared_token: bool = False
    tokens: bool = False
    tls: bool = False
    mutual_tls: bool = False


class Approval(Model):
    """The approval that a confirm asks for (`requested`) or that an allow used up (`used`).

    `expires_at` is in seconds since 1970 UTC.
    """

    id: str
    state: Literal["requested", "used"]
    expires_at: int


class Limits(Model):
    """What permitted work may use and must do. Each point has one complete subclass."""

    def boundaries(self) -> frozenset[str]:
        """The boundaries that a backend of this machine must be shown to hold for this work."""
        return frozenset()

    def on_backend(self) -> str | None:
        """The one backend that has to hold them; None where any may."""
        return None


class Decision(Model):
    """The answer to one request; findings are sorted, so equal inputs give equal bytes.

    `policy` is absent only where no policy bundle could be reached, `input_digest` only where
    no input could be gathered; both are denies with a code under `engine.`.
    """

    decision_id: str
    point: str
    mode: Mode
    outcome: Outcome
    findings: tuple[Finding, ...]
    limits: SerializeAsAny[Limits] | None
    policy: Revisions | None
    input_digest: Digest | None
    approval: Approval | None = None


class Boundary(Model):
    """One boundary that a backend on this machine was shown to hold, or not.

    `kind` says who holds it: `kernel`, `supervised` (the engine), `bounded`, or `unsupported`.
    `evidence` is the digest of what the probe saw.
    """

    backend: str
    boundary: str
    kind: str
    enforced: bool
    evidence: Digest


class Probe(Model):
    """When and on what the boundaries of the backend `id` were tried; `probed_at` in seconds since 1970 UTC.

    `subject` is the digest of all that the result was taken on, `machine` that of what is here now;
    `authentic` says that this installation made the result and nobody has changed it since (H05).
    """

    id: str
    subject: Digest
    machine: Digest
    probed_at: int
    authentic: bool


LimitsT = TypeVar("LimitsT", bound=Limits)

_KEY = secrets.token_bytes(32)
"""Of this process: a seal says nothing anywhere else."""


@dataclass(frozen=True, slots=True)
class Permit:
    """An enforced allow, sealed over all its fields: `enforce` is the only caller of `Permit.seal`."""

    decision_id: str
    point: str
    input_digest: str
    limits: Limits
    _seal: object

    @classmethod
    def seal(cls, *, decision_id: str, point: str, input_digest: str, limits: Limits) -> Permit:
        """Make a permit; `enforce` calls this and nothing else does."""
        return cls(decision_id, point, input_digest, limits, _mac(decision_id, point, input_digest, limits))

    def demand(self, point: str, input_digest: str, limits: type[LimitsT]) -> LimitsT:
        """Return the limits if this permit was sealed for exactly this point and input.

        Raises WorkError otherwise. Every adapter calls this first.
        """
        mac = _mac(self.decision_id, self.point, self.input_digest, self.limits)
        sealed = isinstance(self._seal, bytes) and hmac.compare_digest(self._seal, mac)
        if not sealed or (self.point, self.input_digest) != (point, input_digest) or type(self.limits) is not limits:
            raise WorkError(
                f"this work has no permit for point `{point}`",
                remedy="ask the engine for a decision on exactly this request",
                code="engine.permit_missing",
            )
        return self.limits


def _mac(decision_id: str, point: str, input_digest: str, limits: object) -> bytes:
    text = limits.model_dump_json() if isinstance(limits, Limits) else ""
    fields = json.dumps([decision_id, point, input_digest, type(limits).__qualname__, text])
    return hmac.digest(_KEY, fields.encode("utf-8"), "sha256")


@dataclass(frozen=True, slots=True)
class Result:
    """What approved work did: a status word and facts without content."""

    status: str
    facts: dict[str, Any]
