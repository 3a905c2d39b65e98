"""The words of a decision as closed types: outcome, finding, limits, decision, permit, result."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SerializeAsAny

from engine.errors import PermitMissingError

ENGINE_CODES = "engine."
"""Prefix of codes that only the engine itself emits."""

RESERVED_CODES = frozenset({"policy_stale", "policy_unavailable", "unauthorized"})
"""Codes without that prefix that only the engine emits: H13, D05."""


def is_reserved(code: str) -> bool:
    """Whether only the engine itself may emit this code; no policy may."""
    return code.startswith(ENGINE_CODES) or code in RESERVED_CODES


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hex, without prefix."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
"""A SHA-256 as written in decisions and records: `sha256:` and 64 hex digits."""

Digest = Annotated[str, Field(pattern=f"^{DIGEST.pattern}$")]

TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The name of a tool, as in policy/; no entry has any other name."""

ToolName = Annotated[str, Field(pattern=f"^{TOOL_NAME.pattern}$")]

Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""A word of a request whose meaning is decided by rules and values, not by the format."""

SEALED = r"^sealed:1:[A-Za-z0-9_-]{66,}$"
"""A secret that is sealed to the key of a runner: an HPKE ciphertext (RFC 9180) of at least one byte in base64url."""

Count = Annotated[int, Field(ge=0)]
"""A number of things, such as bytes or milliseconds."""

Line = Annotated[str, Field(max_length=4_096)]
"""A path, a label or a time in a request."""


def _no_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


ABSENT: Any = Field(default=None, exclude_if=lambda value: value is None, json_schema_extra=_no_default)
"""The default of a field that is left out where it has no value."""


def passing(check: Callable[[str], object], must: str) -> AfterValidator:
    """Keeps a text for which the check raises no ValueError; the error says that the field `must` … ."""

    def checked(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise ValueError(f"must {must}") from error
        return text

    return AfterValidator(checked)


Text = Annotated[str, Field(max_length=64 << 20)]
"""Maximum content of a request: what OPA accepts in one input, and 50 MB of media in base64."""

Object = Annotated[dict[str, Any], Field(max_length=10_000)]
"""A JSON object in a request whose keys are not ours; as many as `ReadLimits.request_keys`."""


class Pace(StrEnum):
    """The kind of a slow call; each kind has its own threads, so that none waits for another."""

    SHORT = "short"  # the state
    SLOW = "slow"  # reading files, network lookups, probing a sandbox
    BUNDLE = "bundle"  # reading a source bundle, which may have gigabytes
    HEAVY = "heavy"  # computing on a large request


class Model(BaseModel):
    """Base of every model: frozen, closed to unknown fields, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Named(Model):
    """Something of which its id is all that rules see: an item of a list for a requirement of each."""

    id: str


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
    """A dry run or an enforced decision; stated in every decision and record."""

    CHECK = "check"
    ENFORCE = "enforce"


WaiverId = Annotated[str | None, Field(exclude_if=lambda id_: id_ is None)]


class Finding(Model):
    """A requirement that did not hold. `subject` is an id such as `records/contacts-2`, never content.

    `requirement` states what must hold; for an engine fault (a code `engine.…`), what failed. `waiver` is the id of
    the row of policy/waivers.yaml because of which it stops nothing; absent without one.
    """

    code: str
    level: Level
    requirement: str
    subject: str | None
    remedy: str
    waiver: WaiverId = None


class Revisions(Model):
    """Digests of the rules and of the values that made a decision."""

    rules: Digest
    values: Digest


class Via(StrEnum):
    """How a caller came in; established by the engine, never stated by the caller."""

    PROCESS = "process"  # the engine is inside the caller's own process
    LOOPBACK = "loopback"  # a listener on this machine that requires no token
    TOKEN = "token"  # noqa: S105  (a scoped one)
    SHARED_TOKEN = "shared_token"  # noqa: S105
    CERTIFICATE = "certificate"  # mutual TLS
    CONTROL = "control"  # the socket in the state folder
    NONE = "none"  # nothing that was requested


class Caller(Model):
    """The caller. `points` and `approves`: where a token may ask and where it may approve; others have none."""

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
    """The approval that a confirm requests (`requested`) or that an allow used up (`used`)."""

    id: str
    state: Literal["requested", "used"]
    expires_at: str


class Limits(Model):
    """What permitted work may use and must do. Each point has one complete subclass."""

    def boundaries(self) -> frozenset[str]:
        """The boundaries that a backend of this machine must be shown to enforce for this work."""
        return frozenset()

    def on_backend(self) -> str | None:
        """The backend that must enforce them; None if any may."""
        return None


class Decision(Model):
    """The answer to one request; findings are sorted, so equal inputs give equal bytes.

    `policy` is absent only if no policy bundle could be reached, `input_digest` only if
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
    """One boundary, and whether a backend on this machine was shown to enforce it.

    `kind` is the mechanism: `kernel`, `supervised` (the engine), `bounded`, or `unsupported`.
    `evidence` is the digest of what the probe saw. `run` is the digest of the one request that a remote platform
    gave it for; None if it holds for all.
    """

    backend: str
    boundary: str
    kind: str
    enforced: bool
    evidence: Digest
    run: Digest | None = None


class AdmittedSource(Model):
    """What a permit of point `source` admits: the digest of the source bundle, and the SHA-256 of each record by id."""

    digest: Digest
    records: dict[str, Sha256]


class HeldEnvironment(Model):
    """A built environment that this engine holds open, and what can be undone there.

    `built` is the digest of its database as it was built, which the record of its build has. `reset`: it can be set
    back to that; `checkpoint`: to its current state; `restorable`: to the checkpoint that was asked about, if any.
    All three are shown by the digests of the files that would be restored.
    """

    environment: str
    built: Sha256 | None = None
    reset: bool
    checkpoint: bool
    restorable: bool | None = None


class Probe(Model):
    """When and on which machine state the backend `id` was probed; `probed_at` in seconds since 1970 UTC.

    `subject` is the digest of the machine state at the probe, `machine` that of the current one;
    `authentic` means that this installation made the result and that it is unchanged (H05).
    """

    id: str
    subject: Digest
    machine: Digest
    probed_at: int
    authentic: bool


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """The boundaries that the sandboxes of this machine were shown to enforce, and the probe of each."""

    boundaries: tuple[Boundary, ...] = ()
    probes: tuple[Probe, ...] = ()


class AdapterContract(Model):
    """What an admitted adapter manifest promises: its operations, and the schema of each tool's arguments."""

    operations: tuple[str, ...]
    schemas: Mapping[str, dict[str, Any]]


class AdapterFacts(Model):
    """What this engine knows of adapters: whether its switch was given, and what it admitted since it was opened.

    `sources`: the source-policy hash of each environment. `contracts`: by digest of their manifest.
    """

    enabled: bool = False
    sources: Mapping[str, Digest] = Field(default_factory=dict)
    contracts: Mapping[Digest, AdapterContract] = Field(default_factory=dict)


ModelError = Literal[
    "connection_failed",
    "tls_failed",
    "deadline_exceeded",
    "response_malformed",
    "redirect_blocked",
    "key_refused",
    "throttled",
    "provider_failed",
    "request_refused",
    "answer_too_large",
    "answer_incomplete",
    "answer_not_in_contract",
    "other_model",
    "finish_not_admitted",
    "usage_missing",
    "key_in_answer",
    "key_in_request",
]
"""Why an attempt of the remote model brought no answer: stable words, and all that is recorded of the reason."""


class ProviderSettings(Model):
    """What the variables of the remote model state, without the key.

    `missing` names the variables that are not set or cannot be used. With `defaults`, a base URL or model that is
    not stated is that of policy/llm.yaml.
    """

    missing: tuple[str, ...] = ("AGENT_DATA_LLM_BASE_URL", "AGENT_DATA_API_KEY", "AGENT_DATA_LLM_MODEL")
    base_url: str | None = None
    model: str | None = None
    timeout_seconds: int | None = None
    defaults: bool = False


LimitsT = TypeVar("LimitsT", bound=Limits)

_KEY = secrets.token_bytes(32)
"""The key of this process; a seal is valid only in it."""


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
            raise PermitMissingError(
                f"this work has no permit for point `{point}`", remedy="request a decision on exactly this request"
            )
        return self.limits


def _mac(decision_id: str, point: str, input_digest: str, limits: object) -> bytes:
    text = limits.model_dump_json() if isinstance(limits, Limits) else ""
    fields = json.dumps([decision_id, point, input_digest, type(limits).__qualname__, text])
    return hmac.digest(_KEY, fields.encode("utf-8"), "sha256")


class StopSignal(threading.Event):
    """Set when a person has stopped the approved work that has it."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Callable[[], object]] = []
        self._guard = threading.Lock()

    def then(self, call: Callable[[], object]) -> None:
        """Have this called once the work is stopped, in any thread; at once if it is. Ends with `forget`."""
        with self._guard:
            self._calls.append(call)
            stopped = self.is_set()
        if stopped:
            call()

    def forget(self, call: Callable[[], object]) -> None:
        """Call this no more: what it would end has ended."""
        with self._guard, suppress(ValueError):
            self._calls.remove(call)

    @property
    def awaited(self) -> bool:
        """Whether something that the work started is still in progress."""
        return bool(self._calls)

    def set(self) -> None:
        """Stop the work."""
        with self._guard:
            super().set()
            calls = list(self._calls)
        for call in calls:
            with suppress(Exception):  # the others are ended all the same
                call()


@dataclass(frozen=True, slots=True)
class Job:
    """What the work is about: the digest of the input that was decided on, and what gather left open.

    `stop` is set when the work is to end before its time.
    """

    input_digest: str
    opened: Any
    stop: StopSignal = field(default_factory=StopSignal)


@dataclass(frozen=True, slots=True)
class Result:
    """What approved work did: a status word and facts without content."""

    status: str
    facts: dict[str, Any]
