"""Administrative acts: performed by the server that uses the state folder, else in this process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from engine.cli import options
from engine.cli.administration.control import ACT_SECONDS, NotServedError, post
from engine.cli.outputs import json_text, print_text, table
from engine.cli.terminal import notice
from engine.documents.files import printable
from engine.errors import EngineError, Exit, GatherError
from engine.facts.text.nearest import did_you_mean, nearest
from engine.settings import Settings
from engine.state import has_state, open_state
from engine.state.rows import PrefixRow, TokenRow
from engine.times import row_document

if TYPE_CHECKING:
    from engine.state.store import Store


TOKEN = "ENGINE_TOKEN"  # noqa: S105  (the name of a variable)
"""The token of a person who acts as its principal."""

_URGENT_SECONDS = 5.0
"""For an engine to take an urgent act; others may not go on allowing while it hangs."""

Reason = Annotated[str | None, options.words(help="Reason to record; one line.")]


class ActRefusedError(EngineError):
    """The policy does not let the caller act so."""

    code = "engine.act_refused"
    exit = Exit.DENY

    def __str__(self) -> str:
        return self.message  # a line for each finding


def act(sources: options.Sources, request: dict[str, Any], *, urgent: bool = False) -> dict[str, Any]:
    """Take an act and return what it made or changed, as JSON. Raises EngineError, also where policy refuses it.

    A server that uses the state folder decides by its own policy; only where there is none is that of `sources` used,
    and for an urgent act also where none answers soon. One that takes it later knows it by its id.
    """
    token = os.environ.get(TOKEN)
    seconds = _URGENT_SECONDS if urgent else ACT_SECONDS
    try:
        reply = post(options.state_folder(sources.state), "/v1/administration", request, token, seconds)
    except NotServedError:
        return _here(sources, request, token)
    except EngineError as error:
        if not urgent:
            raise
        notice(f"{error}; this command acts without it")
        return _here(sources, request, token)
    document = reply.document
    if "decision" not in document or "done" not in document:
        raise _failed(reply.status, document)
    return _done(document["decision"], document["done"])


def with_tools(refused: ActRefusedError, sources: options.Sources, name: str) -> ActRefusedError:
    """The refusal; of a tool that is not known, with the tools that are spelled alike, else with all."""
    if "_tool_unknown: " in refused.message:
        with sources.engine("administration") as engine:
            known = [] if engine.policy is None else [*(engine.policy.row(("tools", "tools")).value or {})]
        if name not in known:
            near = nearest(name, known, {})
            said = did_you_mean(near) if near else f"there are {printable(', '.join(known), 1_000) or 'none'}"
            refused.remedy = f"{refused.remedy}; {said}"
    return refused


def _here(sources: options.Sources, request: dict[str, Any], token: str | None) -> dict[str, Any]:
    from engine.administration.users import bearer_of

    with sources.engine("administration") as engine:
        stated: Any = request
        context = options.Sources().context()  # the user as the kernel knows it
        try:
            if token is not None:
                context = replace(context, caller=bearer_of(token, engine.store(), engine.now()))
        except EngineError as error:
            stated = error  # recorded as an attempt of this user
        administered = engine.administer(stated, context)
    answer = administered.answer
    if answer.fault is not None:
        raise _unauthorized() if answer.fault.code == "unauthorized" else answer.fault
    return _done(answer.decision.model_dump(mode="json"), administered.done)


def actor(settings: Settings) -> str:
    """The principal as which acts are taken. Raises EngineError for a token that names none."""
    token = os.environ.get(TOKEN)
    if token is None:
        return options.user()
    from engine.administration.users import bearer_of

    with closing(open_state(settings)) as store:
        return bearer_of(token, store, int(time.time())).principal or ""


def _done(decision: dict[str, Any], done: dict[str, Any] | None) -> dict[str, Any]:
    if done is not None:
        return done
    findings = [f"{one['code']}: required: {one['requirement']}\n  {one['remedy']}" for one in decision["findings"]]
    *_, last = findings
    text, _, remedy = last.rpartition("\n  ")
    raise ActRefusedError("\n".join([*findings[:-1], text]), remedy=remedy)


def _failed(status: int, document: dict[str, Any]) -> EngineError:
    """The error behind a problem document of the server."""
    if status == 401:  # noqa: PLR2004
        return _unauthorized()
    kind = EngineError if status >= 500 else ActRefusedError if status == 409 else GatherError  # noqa: PLR2004
    return kind(
        str(document.get("detail") or f"the server answered with HTTP {status}"),
        remedy=str(document.get("remedy") or "see the log of the server"),
    )


def _unauthorized() -> EngineError:
    return ActRefusedError(
        f"the token in {TOKEN} is unknown, expired or revoked",
        remedy=f"use another one, or unset {TOKEN} to act as the current user",
        code="unauthorized",
    )


Row = TypeVar("Row")

DAY = 86_400
Days = Annotated[int, typer.Option(min=1, max=1_000_000, help="Lifetime in days.")]
"""The longest lifetime that a command accepts; the policy sets lower limits."""
MOST = 100_000
"""Rows of one list."""
Limit = Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of rows; newest first.")]


@contextmanager
def found(state: options.StateAt | None) -> Iterator[Store]:
    """The existing state; never creates one. Raises GatherError if there is none, StateError."""
    settings = options.Sources(state=state).settings()
    if not has_state(settings):
        raise GatherError(
            f"`{printable(str(settings.state))}` has no state",
            remedy="name the state folder of the engine with --state, or in ENGINE_STATE_DIR",
        )
    with closing(open_state(settings)) as store:
        yield store


def print_rows(
    what: str,
    rows: Sequence[Row],
    how: options.Output,
    document: Callable[[Row], dict[str, Any]],
    lines: Callable[[Row], list[str]],
    cells: dict[str, Callable[[Row], str]],
) -> None:
    """Print every row as JSON, as `cells` by their titles on a terminal, else as lines; `what` they are, in plural."""
    if how == "json":
        print_text(json_text({what: [document(row) for row in rows]}, sort=True))
    elif rows and sys.stdout.isatty():
        print_text(table([*cells], [[cell(row) for cell in cells.values()] for row in rows]))
    else:
        print_text("\n".join([line for row in rows for line in lines(row)] or [f"no {what}"]))


def validity(row: PrefixRow | TokenRow) -> str:
    """Whether a token or an approved prefix counts now."""
    if row.revoked_at is not None:
        return "revoked"
    if getattr(row, "used_at", None) is not None:
        return "used"
    return "valid" if time.time() < row.expires_at else "expired"


def with_validity(row: PrefixRow | TokenRow) -> dict[str, Any]:
    """A row as JSON, with whether it counts now as its `state`."""
    return {**row_document(row), "state": validity(row)}
