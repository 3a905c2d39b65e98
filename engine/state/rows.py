"""The rows of the engine's state, its limits and its errors. Times are whole seconds since 1970 UTC."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal

from engine.documents.files import printable
from engine.errors import Exit, StateError
from engine.state.checks import LongText, Sha256, Text, TextOrEmpty, Uuid, Whole

ApprovalState = Literal["requested", "granted", "refused", "used"]
BegunKind = Literal["new", "pending", "done", "conflict"]
ChildState = Literal["running", "ended", "cancelled", "killed"]
AttemptState = Literal["begun", "ok", "failed"]
CheckName = Literal["sandbox", "validation"]
StopScope = Literal["all", "tool", "principal"]
ActivationState = Literal["proposed", "switching", "active", "withdrawn"]

AUDIENCE = r"^[!-~]{1,128}$"
"""The name of a server in a token: printable ASCII, because it is compared exactly."""

MOST_WORDS = 16
"""Words of an approved prefix: as many of a command as the facts for the policy contain."""


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Waiting and retention times in seconds, and the size of one cleaning step."""

    recent_seconds: float = (
        0.05  # stops, callers, and whether there are tokens, are read so often; a change waits as long
    )
    busy_seconds: float = 5.0  # wait for another writing process; a commit takes milliseconds
    open_hold_seconds: int = 86_400  # a reservation can be settled until then; afterwards it counts as used
    settled_hold_seconds: int = 3_600  # for how long a settled reservation is known again
    idempotency_seconds: int = 86_400  # of a key; callers that retry do so within hours
    unanswered_seconds: int = 30 * 86_400  # an unresolved approval is kept after it expired
    run_seconds: int = 30 * 86_400  # what a run has touched is kept until it was not used for so long
    batch: int = 1_024  # operations that share one commit
    sweep: int = 64  # rows too old to matter that one writing operation removes
    checked_bytes: int = 64 << 20  # a larger file is not read whole when it is opened
    connections: int = 8  # to PostgreSQL, of one engine; more help only writes to different rows
    connect_seconds: int = 2  # to reach PostgreSQL and log in; the least that libpq accepts
    wait_seconds: float = 1.0  # for a connection that others use
    lock_seconds: float = 1.0  # for a row that another engine writes; PostgreSQL ends the wait
    statement_seconds: float = 2.0  # one statement; PostgreSQL ends it
    answer_seconds: float = 3.0  # one operation, after which its connection is cut, also if PostgreSQL hangs
    lag_seconds: float = 0.5  # a token that was read from PostgreSQL may be used; a revocation waits as long


@dataclass(frozen=True, slots=True)
class Counter:
    """One budget that a request uses: its name, key, window and the amount.

    `key` is empty for a budget that all share. `window` is in seconds and begins at multiples
    of itself since 1970; 0 means no end.
    """

    name: Text
    key: TextOrEmpty
    window: Whole
    amount: Whole = 1


@dataclass(frozen=True, slots=True)
class Binding:
    """The request that an approval is bound to: its point, its input, the policy and its caller."""

    point: Text
    input_digest: Text
    rules: Text
    values: Text
    requester: Text | None


@dataclass(frozen=True, slots=True)
class ApprovalRow(Binding):
    """One request for approval, its state and who resolved it; `codes` are the findings to approve.

    `requester_via` is the caller's interface; `decision_id` and `used_at` are those of the decision that used it.
    """

    codes: tuple[Text, ...]
    created_at: Whole
    expires_at: Whole
    requester_via: Text | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: ApprovalState = "requested"
    approver: str | None = None
    reason: str | None = None
    resolved_at: int | None = None
    decision_id: str | None = None
    used_at: int | None = None

    def state_at(self, now: float) -> str:
        """Its state; `expired` for one that was requested or granted, and whose time is over."""
        return "expired" if self.state in {"requested", "granted"} and now >= self.expires_at else self.state


@dataclass(frozen=True, slots=True)
class Begun:
    """Whether a request with an idempotency key is the first of its kind.

    `new`: go on, then call `finish` or `abandon`. `pending`: another one is in progress, or was when its engine
    ended; it may have had its effect and is not run again before the key expires. `done`: `answer` is what
    the first one got, under the revisions `rules` and `values`. `conflict`: the key was used for another body.
    """

    kind: BegunKind
    answer: str | None = None
    rules: str | None = None
    values: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its secret: its principal, the points where it may request decisions or approve.

    `audience` is the one server that accepts it, None for every server of this state. A token for `single_use` is
    valid until `used_at` is set.
    """

    id: str
    principal: str
    points: tuple[str, ...]
    created_at: int
    expires_at: int
    revoked_at: int | None = None
    approves: tuple[str, ...] = ()
    audience: str | None = None
    single_use: bool = False
    used_at: int | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token; `text` is the secret itself and cannot be retrieved again."""

    id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """An approved command prefix: commands that begin with these words run without another approval.

    Bound to a principal, a folder and a tool; `words` are 1 to `MOST_WORDS` whole words.
    """

    principal: Text
    cwd: Text
    tool: Text
    words: tuple[Text, ...]
    approver: Text
    created_at: Whole
    expires_at: Whole
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    revoked_at: int | None = None  # from then on it does not count


@dataclass(frozen=True, slots=True)
class ChildRow:
    """A subagent's conversation and the one that started it.

    `principal` started it; empty for a caller without a name.
    """

    id: Uuid
    parent: Text
    created_at: Whole
    state: ChildState = "running"
    ended_at: int | None = None
    principal: TextOrEmpty = ""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at a task with one program; if it has begun and not ended, its result is unknown (C63)."""

    id: Uuid
    principal: TextOrEmpty
    task: Text
    code_sha256: Sha256
    created_at: Whole
    state: AttemptState = "begun"
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class ArtifactCheckRow:
    """The result of a check of a generated artifact, and the isolation in which the artifact ran (A01, A02)."""

    sha256: Sha256
    name: CheckName
    passed: bool
    ran_in: Text
    decision_id: Text
    made_at: Whole


@dataclass(frozen=True, slots=True)
class CodeRunRow:
    """A run of generated code that has ended; `number` is its order among all, set by the store.

    `owner` is how its caller came in and its name, `result` the JSON of its result, None if none is kept.
    """

    id: Uuid
    owner: LongText
    status: Literal["ok", "stopped"]
    stop_reason: Text
    decision_id: str | None
    result: str | None = field(repr=False)
    started_at: Whole
    ended_at: Whole
    expires_at: Whole
    number: int | None = None


@dataclass(frozen=True, slots=True)
class StopRow:
    """A stop of everything, of one tool or of one principal; `name` is empty for everything."""

    scope: StopScope
    name: TextOrEmpty
    actor: Text
    created_at: Whole
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    reason: LongText | None = None
    lifted_at: int | None = None  # from then on it does not count


@dataclass(frozen=True, slots=True)
class ActivationRow:
    """A release that the engines of this state serve, or are to serve: who built, approved and activated it.

    `proposed`: engines load it. `switching`: each engine begins to serve it. `active`: no engine serves an earlier one.
    `withdrawn`: it was never served, because an engine could not load it, or another one was proposed.
    """

    name: Text
    sequence: Whole
    digest: Text
    author: Text
    approver: Text
    actor: Text
    reason: LongText | None
    proposed_at: Whole
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: ActivationState = "proposed"
    switched_at: int | None = None
    ended_at: int | None = None  # when it became active or was withdrawn
    left_at: int | None = None  # when the agreement was left: from then on an engine may decide by a policy of its own
    left_by: str | None = None
    left_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """An engine that serves the agreed release, and how far it is with the next one.

    Others count `beats` by their own clocks to see whether it lives; `seen_at` is by its own clock, for people.
    `serving` is the digest of a release, `wanted` the id of the activation that `ready` and `fault` are about; None
    while it tries again after the fault.
    """

    id: str
    name: Text
    beats: int
    seen_at: int
    serving: str | None
    wanted: str | None = None
    ready: bool = False  # it serves that release, or has loaded it beside the one that it serves
    fault: str | None = None  # why it cannot: a message, and on the next line what to do


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the engines of a state have agreed on; `next` is proposed or switching.

    An `active` release that was left stays the one of engines that follow agreements.
    """

    active: ActivationRow | None = None
    next: ActivationRow | None = None

    @property
    def served(self) -> tuple[str, ...]:
        """Digests of the releases under which engines may decide now; empty if none was ever activated."""
        return tuple(row.digest for row in (self.active, self._switching) if row is not None)

    @property
    def binding(self) -> bool:
        """Whether engines with a policy of their own may not decide."""
        return self._switching is not None or (self.active is not None and self.active.left_at is None)

    @property
    def _switching(self) -> ActivationRow | None:
        return self.next if self.next is not None and self.next.state == "switching" else None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """A provisioned agent; `id` is the decision that admitted it, `specification` the approved one as canonical JSON.

    `requester` asked for it.
    """

    id: Text
    name: Text
    role: Text
    specification: LongText
    requester: str | None
    created_at: Whole
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """An entry of an agent's memory: who owns it, how sensitive it is, and the kind and name of its origin."""

    owner: Text
    text: LongText = field(repr=False)
    sha256: Sha256
    sensitivity: Text
    origin: Text
    origin_name: Text
    decision_id: Text
    created_at: Whole
    id: Text = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class SourceRecordRow:
    """A record of an admitted source bundle, and how many blocks of its text are known.

    `source` is the digest of the bundle. `export`: it may be shared with others. `sensitive`: it contains secrets or
    private data. `terms` is the JSON of its `SourceTerms`, None if an earlier version of the engine admitted it.
    """

    source: Text
    record: Text
    kind: Text
    sha256: Sha256
    export: bool
    sensitive: bool
    terms: str | None
    blocks: int = 0


class ApprovalUnknownError(StateError):
    """There is no approval with this id."""

    code = "engine.approval_unknown"
    exit = Exit.UNREADABLE

    def __init__(self, id: str) -> None:
        super().__init__(
            f"there is no approval `{printable(id, 40)}`", remedy="see `engine approvals list` for the ids"
        )


class ApprovalClosedError(StateError):
    """The approval was resolved before, or has expired."""

    code = "engine.approval_closed"
    exit = Exit.DENY


class IdTakenError(StateError):
    """A token, an approved prefix or a stop already has this id."""

    code = "engine.id_taken"
    exit = Exit.UNREADABLE
