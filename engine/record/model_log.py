"""The log entry of one attempt at the remote model: eight fields, and nothing else can be in it (A67)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.model import Count, Digest, Model, ModelError

_Amount = Annotated[str, Field(pattern=r"^[0-9]{1,20}(\.[0-9]{1,20})?$")]


class LoggedTokens(Model):
    """Tokens that the provider counted."""

    prompt: Count
    completion: Count


class LoggedCost(Model):
    """The cost of these tokens at the prices of the policy, in decimal notation."""

    amount: _Amount
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class ModelLogEntry(Model):
    """What is recorded of an attempt, beside its decision. A field that is not known is left out, never zero.

    `host` is that of the base URL, `prompt_digest` is of all that was sent.
    """

    provider: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    host: Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$", max_length=253)]
    model: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,128}$")]
    prompt_digest: Digest
    tokens: LoggedTokens | None = None
    cost: LoggedCost | None = None
    retries: Count
    error_class: ModelError | None = None
