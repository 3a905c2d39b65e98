"""Values that are common to all points: levels, callers, budgets, approvals, administration, how the engine is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StrictInt, Tag
from pydantic_core import InitErrorDetails

from engine.model import Model
from engine.values.fields import Checked, Day, Items, Text, Word, unknown


class Lowered(Model):
    """A refusal that is lowered until a date, with an owner."""

    level: Literal["confirm", "warn"] = Field(description="Effect of the finding until then.")
    owner: Text = Field(description="Person or team responsible, such as compliance@example.org.")
    reason: Text = Field(description="Reason for the exception.")
    until: Day = Field(
        description="Last day of the exception in UTC, such as 2027-03-31. From the next day on the finding denies "
        "again."
    )


_Row = Annotated[
    Annotated[Literal["deny", "confirm", "warn"], Tag("word")] | Annotated[Lowered, Tag("lowered")],
    Discriminator(lambda row: "word" if isinstance(row, str) else "lowered"),
]


class Levels(Model):
    """policy/levels.yaml: what a finding does to the outcome; a code without a row denies."""

    levels: Mapping[Word, Mapping[Word, _Row]] = Field(
        description="Level by decision point and code. `confirm`: a person must approve; `warn`: reported only."
    )


class AllReaders(Model):
    """Who may read the decisions on everyone's requests."""

    via: Items[Literal["process", "loopback", "shared_token", "control"]] = Field(
        description="Ways to connect that may read everyone's decisions."
    )
    principals: Items[Text] = Field(description="Names of tokens, certificates or users that may read them.")


class RecordPage(Model):
    """What one request for decisions of the record costs at most."""

    decisions: Annotated[StrictInt, Field(ge=1)] = Field(description="Maximum number of decisions in one answer.")
    bytes: Annotated[StrictInt, Field(ge=1)] = Field(
        description="Maximum number of bytes of the record that are searched."
    )


class Callers(Model):
    """policy/callers.yaml: who may ask for decisions, and about which points."""

    unscoped: Items[Literal["process", "loopback", "shared_token", "control"]] = Field(
        description="Ways to connect that may ask at every decision point. A scoped token always lists its own points."
    )
    certificates: Mapping[str, Items[Word]] = Field(
        description="Decision points by subject of a client certificate, such as `CN=pipeline,O=Example`."
    )
    read_all: AllReaders = Field(description="Who may read every recorded decision, with `whose=all`.")
    read_page: RecordPage = Field(description="What one request for decisions of the record may return and read.")


class Ceiling(Model):
    """The maximum number of enforced allows in one window."""

    limit: Annotated[StrictInt, Field(ge=0)] = Field(
        description="Maximum number of allows per window. Further requests are denied."
    )
    window_seconds: Annotated[StrictInt, Field(ge=0)] = Field(
        description="Length of a window in seconds. Windows are aligned to 1970-01-01T00:00:00Z; 0 means one window "
        "without end."
    )


class Budget(Model):
    """The ceilings of one decision point; a point with one of the three missing allows nothing."""

    principal: Literal["unlimited"] | Ceiling = Field(description="Budget per principal.")
    run: Literal["unlimited"] | Ceiling = Field(description="Budget per run.")
    all: Literal["unlimited"] | Ceiling = Field(description="Budget of all callers together.")


class Budgets(Model):
    """policy/budgets.yaml: how often something may be allowed."""

    budgets: Mapping[Word, Budget] = Field(
        description="Budgets by decision point. A point without a row allows nothing."
    )
    quotas: Mapping[Word, Mapping[Word, Ceiling]] = Field(
        description="Further quotas by decision point and name, such as one per conversation."
    )


class Approvals(Model):
    """policy/approvals.yaml: how long approvals are valid, and which requesters may be unnamed."""

    unnamed_requesters: Items[Literal["process", "loopback", "shared_token"]] = Field(
        description="Ways to connect without a name for which any named approver may approve requests."
    )

    valid_seconds: Annotated[StrictInt, Field(ge=1, le=2_678_400)] = Field(
        description="Seconds for which a request for approval, and its approval, are valid."
    )


class Profile(Model):
    """What the engine may and must do under one profile."""

    payload_detail: bool = Field(
        description="Whether logs may contain whole payloads. For controlled environments only."
    )
    retention_days_min: Annotated[StrictInt, Field(ge=0)] = Field(
        description="Minimum retention of the record, in days."
    )
    static_capabilities: bool = Field(
        description="Whether capabilities that were declared but not probed are accepted."
    )
    tool_error_modes: Items[Literal["safe", "debug"]] = Field(
        description="Error details that a model may receive: `safe`, the type of the error; `debug`, its message too."
    )


def _references(*names: str) -> AfterValidator:
    """Accepts only these references in texts that start with `$`; another one would silently stand for nothing."""
    known = re.compile("|".join(names))

    def check(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: check(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [check(item) for item in value]
        if isinstance(value, str) and value.startswith("$") and known.fullmatch(value[1:]) is None:
            raise ValueError(f"`{value}` stands for nothing that is sent")
        return value

    return AfterValidator(check)


class AuthZenAction(Model):
    """What an action of AuthZEN on resources of one type asks here."""

    resource: Text = Field(description="The type of the resource, such as `todo`.")
    actions: Items[Text] = Field(description="Names of actions, such as `can_update_todo`.")
    point: Word = Field(description="The decision point that is asked.")
    request: Annotated[Mapping[str, Any], _references(r"(subject|action|resource|context)(\.[^.]+)*")] = Field(
        description="The request to it. A text such as `$resource.id` stands for what was sent there."
    )


class EnvoyRequest(Model):
    """What a request that Envoy holds asks here."""

    hosts: Items[Text] = Field(description="Hosts as the request names them, with their port where it has one.")
    methods: Items[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]] = Field(description="Methods.")
    path: Annotated[str, Field(pattern="^/")] = Field(
        description="The path; if it ends with `/`, all paths below it as well."
    )
    point: Word = Field(description="The decision point that is asked.")
    request: Annotated[Mapping[str, Any], _references("method", "host", "path", "query", r"headers\.[a-z0-9_-]+")] = (
        Field(
            description="The request to it. A text such as `$path` or `$headers.x-user` stands for what was sent there."
        )
    )


class Operations(Checked):
    """policy/operations.yaml: how the engine itself is run."""

    profile: Word = Field(description="Active profile: a name under `profiles`.")
    profiles: Mapping[Word, Profile] = Field(description="Available profiles.")
    authzen: Items[AuthZenAction] = Field(
        description="Actions of AuthZEN and the requests they stand for; the first match counts."
    )
    envoy: Items[EnvoyRequest] = Field(
        description="Requests that Envoy holds back and the requests they stand for; the first match counts."
    )

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        yield from unknown("profile", self.profile, self.profiles, ("profile",))


Act = Literal[
    "grant_approval",
    "refuse_approval",
    "issue_token",
    "revoke_token",
    "approve_prefix",
    "revoke_prefix",
    "stop",
    "lift_stop",
    "end_agent",
    "approve_release",
    "leave_agreement",
]
Seconds = Annotated[StrictInt, Field(ge=1, le=3_153_600_000)]


class Administration(Model):
    """policy/administration.yaml: who may perform which act, and the maximum lifetime of what it issues."""

    acts: Mapping[Act, Items[Literal["process", "control", "token"]]] = Field(
        description="Ways to connect for callers of each act. An act without a row is refused."
    )
    reason_optional: Items[Act] = Field(description="Acts that need no reason.")
    token_seconds_max: Seconds = Field(description="Maximum lifetime of a token, in seconds. A longer one is refused.")
    prefix_seconds_max: Seconds = Field(
        description="Maximum lifetime of an approved command prefix, in seconds. A longer one is refused."
    )
