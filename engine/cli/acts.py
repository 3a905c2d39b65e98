"""Administrative acts: taken by the server that holds the record of a state folder, else in this process."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli import options
from engine.cli.control import NotServedError, post
from engine.errors import EngineError, Exit

TOKEN = "ENGINE_TOKEN"  # noqa: S105  (the name of a variable)
"""The token of a person who acts as its principal."""

Reason = Annotated[str | None, typer.Option("--reason", help="Reason to record; one line.", callback=options.text)]


class RefusedError(EngineError):
    """The policy does not let the caller act so."""

    code = "engine.act_refused"
    exit = Exit.DENY


def act(state: Path | None, asked: dict[str, Any]) -> dict[str, Any]:
    """Take an act and return what it made or changed, as JSON. Raises EngineError, also where policy refuses it."""
    chosen, token = options.settings(state), os.environ.get(TOKEN)
    try:
        reply = post(chosen.state, "/v1/administration", asked, token)
    except NotServedError:
        return _here(state, asked, token)
    document = reply.document
    if "decision" not in document or "done" not in document:
        raise _failed(reply.status, document)
    return _done(document["decision"], document["done"])


def _here(state: Path | None, asked: dict[str, Any], token: str | None) -> dict[str, Any]:
    from engine.engine import Engine
    from engine.users import bearer_of

    with Engine(options.settings(state)) as engine:
        options.tell_recovered(engine)
        stated: Any = asked
        context = options.context(None)  # the user as the kernel knows it
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


def _done(decision: dict[str, Any], done: dict[str, Any] | None) -> dict[str, Any]:
    if done is not None:
        return done
    findings = [f"{one['code']}: required: {one['message']}\n  {one['remedy']}" for one in decision["findings"]]
    *_, last = findings
    text, _, remedy = last.rpartition("\n  ")
    raise RefusedError("\n".join([*findings[:-1], text]), remedy=remedy)


def _failed(status: int, document: dict[str, Any]) -> EngineError:
    """The error behind a problem document of the server."""
    if status == 401:  # noqa: PLR2004
        return _unauthorized()
    error = EngineError(
        str(document.get("detail") or f"the server answered with HTTP {status}"),
        remedy=str(document.get("remedy") or "see the log of the server"),
    )
    error.code = str(document.get("code") or error.code)
    error.exit = Exit.FAILED_CLOSED if status >= 500 else Exit.DENY if status == 409 else Exit.UNREADABLE  # noqa: PLR2004
    return error


def _unauthorized() -> EngineError:
    error = EngineError(
        f"the token in {TOKEN} is unknown, expired or revoked",
        remedy=f"use another one, or unset {TOKEN} to act as the user you are",
        code="unauthorized",
    )
    error.exit = Exit.DENY
    return error
