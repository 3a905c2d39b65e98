"""The interface of the engine's state and the rows that pass through it.

Times are whole seconds since 1970 UTC by the engine's clock, given by whoever calls. Every method may be
called by many threads, and several processes may have the same state open. What is returned is durable.

Every method may raise StateError, and then nothing may be taken for granted: a reservation may count and a
claim may stand, but nobody was told so. Arguments that no correct caller gives (a negative amount, a text
longer than `LONGEST_TEXT`) are ValueErrors.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from engine.errors import Exit, StateError

ApprovalState = Literal["requested", "granted", "refused", "used"]
BegunKind = Literal["new", "pending", "done", "conflict"]
ChildState = Literal["running", "ended", "cancelled", "killed"]
AttemptState = Literal["begun", "ok", "failed"]
CheckName = Literal["sandbox", "validation"]

LONGEST_TEXT = 1_024
"""Characters of a name, key, principal or id: longer than any subject of a certificate in use."""

MOST_WORDS = 16
"""Words of an approved prefix: as many of a command as the policy is shown."""

LARGEST = 2**53 - 1
"""The largest amount, total or time: what every JSON reader takes for the same number."""


@dataclass(frozen=True, slots=True)
class StateLimits:
    """How long things are waited for or kept, in seconds, and how much is done in one step."""

    busy_seconds: float = 5.0  # for another process that writes; a commit takes milliseconds
    open_hold_seconds: int = 86_400  # a reservation that nobody settled can be until then; it counts on
    settled_hold_seconds: int = 3_600  # for how long a settled reservation is known again
    idempotency_seconds: int = 86_400  # of a key; callers that retry do so within hours
    unanswered_seconds: int = 30 * 86_400  # an approval nobody decided on is kept after it expired
    batch: int = 1_024  # operations that share one commit
    sweep: int = 64  # rows too old to matter that one writing operation removes
    checked_bytes: int = 64 << 20  # a larger file is not read whole when it is opened


@dataclass(frozen=True, slots=True)
class Counter:
    """One budget that a request draws on: what is counted, for whom, over how long, and how much.

    `key` may be empty, for what is counted for all together. `window` is in seconds and begins at multiples
    of itself since 1970; 0 counts for ever.
    """

    name: str
    key: str
    window: int
    amount: int = 1


@dataclass(frozen=True, slots=True)
class Binding:
    """The one request that an approval is for: its point, its input, the policy it met, and its caller."""

    point: str
    input_digest: str
    rules: str
    values: str
    requester: str | None


@dataclass(frozen=True, slots=True)
class NewApproval(Binding):
    """A request for approval; `codes` are the findings to approve, `requester_via` is how its caller came in.

    It gets `id` where no request for the same is open.
    """

    codes: tuple[str, ...]
    created_at: int
    expires_at: int
    requester_via: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One request for approval, what became of it and who decided; `codes` are what has to be approved.

    `decision_id` and `used_at` are those of the decision that used it up.
    """

    id: str
    point: str
    input_digest: str
    rules: str
    values: str
    requester: str | None
    codes: tuple[str, ...]
    state: ApprovalState
    created_at: int
    expires_at: int
    approver: str | None = None
    reason: str | None = None
    resolved_at: int | None = None
    decision_id: str | None = None
    used_at: int | None = None
    requester_via: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The approval as it was before, None when it is unknown, and whether this claim has used it up."""

    row: ApprovalRow | None
    taken: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """Whether a request with an idempotency key is the first of its kind.

    `new`: go on, and say `finish` or `abandon`. `pending`: another one is under way, or was when its engine
    ended; it may have had its effect and is not run again before the key expires. `done`: `answer` is what
    the first one got, under the revisions `rules` and `values`. `conflict`: the key was used for another body.
    """

    kind: BegunKind
    answer: str | None = None
    rules: str | None = None
    values: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its secret: its principal, the points it may ask about, and those it may approve at."""

    id: str
    principal: str
    points: tuple[str, ...]
    created_at: int
    expires_at: int
    revoked_at: int | None = None
    approves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token; `text` is the secret itself and cannot be had a second time."""

    id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewPrefix:
    """Commands that somebody may run from now on without being asked: those that begin with these words.

    Bound to who runs them, the folder they run in and the tool; `words` are 1 to `MOST_WORDS` whole words.
    """

    principal: str
    cwd: str
    tool: str
    words: tuple[str, ...]
    approver: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """An approved prefix; `revoked_at` says since when it no longer counts."""

    id: str
    principal: str
    cwd: str
    tool: str
    words: tuple[str, ...]
    approver: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class NewChild:
    """A subagent's conversation and the one that started it; `id` is a UUID in its one form, lower case."""

    id: str
    parent: str
    created_at: int


@dataclass(frozen=True, slots=True)
class ChildRow:
    """A subagent's conversation, whose it is, and how it ended."""

    id: str
    parent: str
    state: ChildState
    created_at: int
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class NewAttempt:
    """One try at a task with one program; `id` is a UUID, `code_sha256` 64 hex digits (C63)."""

    id: str
    principal: str
    task: str
    code_sha256: str
    created_at: int


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A try at a task; one that was begun and never ended is one whose end nobody knows."""

    id: str
    code_sha256: str
    state: AttemptState
    created_at: int
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class NewArtifactCheck:
    """What a check of a generated artifact gave, and the isolation in which the artifact ran (A01, A02)."""

    sha256: str
    name: CheckName
    passed: bool
    ran_in: str
    decision_id: str
    made_at: int


@dataclass(frozen=True, slots=True)
class ArtifactCheckRow:
    """A check that was made of an artifact; the newest one of its name counts."""

    number: int
    name: CheckName
    passed: bool
    ran_in: str
    decision_id: str
    made_at: int


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The end of an installation's record: `seq` lines, the last of which has the SHA-256 `hash`.

    Of these, `lines` with `size` bytes stand in segment `segment`.
    """

    installation: str
    segment: int
    lines: int
    size: int
    seq: int
    hash: str


class ApprovalUnknownError(StateError):
    """There is no approval of this id."""

    code = "engine.approval_unknown"
    exit = Exit.UNREADABLE


class ApprovalClosedError(StateError):
    """The approval was resolved before, or has expired."""

    code = "engine.approval_closed"
    exit = Exit.DENY


class IdTakenError(StateError):
    """There is a token or an approved prefix of this id already."""

    code = "engine.id_taken"
    exit = Exit.UNREADABLE


class Store(Protocol):
    """The state of one installation. Made by `engine.state.open_store`."""

    def used(self, counter: Counter, now: int) -> int:
        """How much of a budget is used or held in the window of `now`."""

    def reserve(self, hold: str, counters: Sequence[Counter], now: int) -> tuple[int, ...]:
        """Count the amounts of all counters at once; gives, for each, what was used or held before.

        Whether that is still within the budget is for policy to say; what is not wanted is given back with
        `release`. A hold that is known gives its first answer and counts nothing; how long it is known stands
        in StateLimits. StateError when a total would pass 2^53. A hold that is never settled or released
        stays counted until its window ends.
        """

    def settle(self, hold: str, amounts: Mapping[str, int]) -> None:
        """Put what was really used in the place of what was reserved, by name of counter; others stay.

        Counts in the window of the reservation. Harmless for a hold that is unknown or settled.
        """

    def release(self, hold: str) -> None:
        """Give everything a hold reserved back. Harmless for a hold that is unknown or settled."""

    def request_approval(self, new: NewApproval) -> ApprovalRow:
        """The unexpired row with the same binding that is requested or granted, else a new one."""

    def approval(self, id: str) -> ApprovalRow | None:  # noqa: A002  (what everybody calls it)
        """The approval of this id, whatever its state and age."""

    def approvals(self, state: ApprovalState | None, limit: int) -> tuple[ApprovalRow, ...]:
        """The newest approvals, of one state or of all; at most `limit`."""

    def resolve(
        self,
        id: str,  # noqa: A002
        state: Literal["granted", "refused"],
        approver: str,
        reason: str | None,
        now: int,
    ) -> ApprovalRow:
        """Grant or refuse what is requested and not expired; gives the row as it is then.

        Raises ApprovalUnknownError or ApprovalClosedError.
        """

    def withdraw_approval(self, id: str) -> None:  # noqa: A002
        """Remove a request for approval that no person decided on; harmless for all others."""

    def claim(self, id: str, decision_id: str, binding: Binding, now: int) -> Claim:  # noqa: A002
        """Use up an approval that is granted and has exactly this binding; one caller only takes it.

        A request with another binding changes nothing. Does not look at the expiry: whether the row counts
        is for policy to say.
        """

    def unclaim(self, id: str, decision_id: str) -> None:  # noqa: A002
        """Make an approval granted again that this decision used up; harmless for all others."""

    def begin(self, scope: str, key: str, body: str, now: int) -> Begun:
        """Take an idempotency key within a scope, for a body with this digest."""

    def finish(self, scope: str, key: str, answer: str, rules: str, values: str) -> None:
        """Keep the answer to a request that this store began, and the revisions that made it."""

    def abandon(self, scope: str, key: str) -> None:
        """Free the key of a request that this store began and that had no effect."""

    def issue(
        self,
        principal: str,
        points: Sequence[str],
        expires_at: int,
        now: int,
        approves: Sequence[str] = (),
        id: str | None = None,  # noqa: A002
    ) -> IssuedToken:
        """Make a token that may ask about some points and approve at others; only its digest is kept.

        `id` is a new one of `new_token_id`, made here where none is given. Raises IdTakenError.
        """

    def tokens(self) -> tuple[TokenRow, ...]:
        """Every token ever issued, newest first."""

    def revoke(self, id: str, now: int) -> TokenRow | None:  # noqa: A002
        """End a token for good; gives its row, None when it is unknown. Twice is once."""

    def token(self, presented: str, now: int) -> TokenRow | None:
        """The token that was presented; None for anything else, expired or revoked, by the same path."""

    def approve_prefix(self, new: NewPrefix, id: str | None = None) -> PrefixRow:  # noqa: A002
        """Keep an approved prefix under a new id; the same one again is another row. Raises IdTakenError."""

    def prefixes(self, principal: str | None, cwd: str | None, limit: int) -> tuple[PrefixRow, ...]:
        """The newest prefixes of a principal and a folder, of any where None; revoked and expired ones too."""

    def prefix(self, id: str) -> PrefixRow | None:  # noqa: A002
        """The approved prefix of this id, whatever its state."""

    def revoke_prefix(self, id: str, now: int) -> PrefixRow | None:  # noqa: A002
        """End an approved prefix for good; gives its row, None when it is unknown. Twice is once."""

    def add_child(self, new: NewChild) -> ChildRow:
        """Keep a new child, which is running; for an id that is known, the row there is, whosever it is."""

    def child(self, id: str) -> ChildRow | None:  # noqa: A002
        """The child of this id, whatever its state."""

    def end_child(self, id: str, state: ChildState, now: int) -> ChildRow | None:  # noqa: A002
        """Say how a running child ended; gives its row, None when it is unknown. The first end stands."""

    def children(self, parent: str | None, limit: int) -> tuple[ChildRow, ...]:
        """The newest children of a conversation, or of all; at most `limit`."""

    def begin_attempt(self, new: NewAttempt) -> None:
        """Keep a try at a task before it is decided on; the same id twice is once."""

    def end_attempt(self, id: str, state: Literal["ok", "failed"], now: int) -> None:  # noqa: A002
        """Say how a try ended; the first end stands."""

    def withdraw_attempt(self, id: str) -> None:  # noqa: A002
        """Forget a try that was begun and of which nothing came; one that has ended stays."""

    def attempts(self, principal: str, task: str, before: str | None, limit: int) -> tuple[AttemptRow, ...]:
        """The newest tries of a principal at a task; where `before` is one of them, those begun earlier than it."""

    def add_artifact_check(self, new: NewArtifactCheck) -> None:
        """Keep what a check of an artifact gave."""

    def artifact_checks(self, sha256: str, limit: int) -> tuple[ArtifactCheckRow, ...]:
        """The newest checks of an artifact."""

    def record_heads(self) -> tuple[RecordHead, ...]:
        """The last end of each record that was remembered."""

    def remember_head(self, head: RecordHead) -> None:
        """Remember the end of a record; harmless where it is not later than what is remembered."""

    def writable(self) -> bool:
        """Whether something can be written now; tried, never raises."""

    @property
    def failed(self) -> bool:
        """Whether every later call is a StateError, and only another store may work again."""

    def close(self) -> None:
        """Let go of everything; nothing in a forked process. Every later call is a StateError."""
