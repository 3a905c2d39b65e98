"""Point `administration`: acts on approvals, tokens, prefixes, stops, agents, releases of a policy and agreements.

The row of an approval and the caller are facts of the engine. An act is recorded before it takes effect.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from engine.facts.text.hidden import is_blank
from engine.model import Digest, Limits, Model, Named, Pace
from engine.points import GatherContext, Gathered, Point
from engine.points.registry import POINTS
from engine.state.rows import AUDIENCE, MOST_WORDS, ApprovalUnknownError, StopScope
from engine.values.operations import Act

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
Names = Annotated[tuple[Name, ...], Field(max_length=256)]
Seconds = Annotated[int, Field(ge=1, le=2**40)]


def _line(text: str) -> str:
    if is_blank(text) or not text.isprintable():
        raise ValueError("not a single line of text")
    return text


Reason = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_line)]
"""One line that a person can read."""


class Scope(Model):
    """The requested token: its principal, the points at which it may ask and approve, and its lifetime in seconds.

    `audience` is the one server that accepts it; absent, every server of this state does.
    """

    principal: Name
    points: Names
    approves: Names
    seconds: Seconds
    audience: Annotated[str, Field(pattern=AUDIENCE)] | None = None
    single_use: bool = False


class Prefix(Model):
    """The requested command prefix: who may run it, in which folder, with which tool, and its lifetime in seconds."""

    principal: Name
    cwd: Text
    tool: Name
    words: Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_WORDS)]
    seconds: Seconds


class Stop(Model):
    """What to stop: everything, or the tool or the principal of this name."""

    scope: StopScope
    name: Annotated[str, Field(max_length=256)] = ""


class PolicyRelease(Model):
    """The release of a policy to be approved: its author, and the digest of its statement, which covers its content."""

    name: Name
    sequence: Annotated[int, Field(ge=1, le=2**53 - 1)]
    author: Name
    digest: Digest


class AdministrationRequest(Model):
    """One act. `id` names the approval, token, prefix, stop, agent, release or activation, also a new one."""

    act: Act
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8,32}$")]
    reason: Reason | None = None
    scope: Scope | None = None
    prefix: Prefix | None = None
    stop: Stop | None = None
    release: PolicyRelease | None = None


class Requested(Model):
    """A request for approval, from the state."""

    point: str
    state: str
    expires_at: int
    requester_named: bool
    requester: str | None
    requester_via: str | None


class AdministrationInput(Model):
    """What OPA sees. `approval` is absent if the state has none with this id.

    `unknown_points` are names in the scope of a token that are no decision points.
    """

    act: str
    id: str
    reason: str | None
    approval: Requested | None
    scope: Scope | None
    unknown_points: tuple[Named, ...]
    prefix: Prefix | None
    stop: Stop | None
    release: PolicyRelease | None


class AdministrationLimits(Limits):
    """The one act that may be performed, and the lifetime in seconds of what it issues; 0 if it issues nothing."""

    act: Act
    id: str
    seconds: int


def gather(request: AdministrationRequest, context: GatherContext) -> Gathered:
    """Look the approval up, and see which points of a token exist; everything else is in the request.

    Raises ApprovalUnknownError.
    """
    approval = None
    if request.act in {"grant_approval", "refuse_approval"}:
        if (row := context.approval(request.id)) is None:
            raise ApprovalUnknownError(request.id)
        approval = Requested(
            point=row.point,
            state=row.state,
            expires_at=row.expires_at,
            requester_named=row.requester is not None,
            requester=row.requester,
            requester_via=row.requester_via,
        )
    named = () if request.scope is None else (*request.scope.points, *request.scope.approves)
    unknown = tuple(Named(id=name) for name in sorted({*named} - POINTS.keys()))
    facts = AdministrationInput(**dict(request), approval=approval, unknown_points=unknown)
    return Gathered(facts, f"{request.act} {request.id}")


POINT = Point(
    "administration",
    AdministrationRequest,
    AdministrationInput,
    AdministrationLimits,
    gather,
    Pace.SHORT,
    act="the command for the act, such as `engine approvals grant`, POST /v1/administration, or `administer` in Python",
)
