"""The remote model: which one may be asked, its prices and the limits of a request: policy/llm.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StringConstraints
from pydantic_core import InitErrorDetails

from engine.model import Model, ModelError
from engine.values.fields import Checked, Host, Items, Word, value_error

ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$", max_length=128)]
"""The name of a model as its provider writes it."""

Amount = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$")]
"""An amount of money in decimal notation; a text, so that it is exact."""

Milliseconds = Annotated[StrictInt, Field(ge=0, le=600_000)]
Seconds = Annotated[StrictInt, Field(ge=1, le=3_600)]


class ModelProvider(Model):
    """Where requests may go."""

    host: Host = Field(description="Exact host of the base URL; a subdomain is another host.")
    port: Annotated[StrictInt, Field(ge=1, le=65535)] = Field(description="TCP port of the base URL.")
    models: Items[ModelName] = Field(description="Models that may be asked there: names under `models`.")


class RemoteModelRow(Model):
    """A model."""

    answers_as: Items[ModelName] = Field(
        description="Model names that its answers may state: its own, and the dated versions that the provider runs."
    )


class Price(Model):
    """Prices of one model."""

    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = Field(
        description="Currency as three capital letters, such as USD."
    )
    prompt: Amount = Field(description='Price of 1,000,000 tokens of the prompt, such as "0.40".')
    completion: Amount = Field(description='Price of 1,000,000 tokens of the answer, such as "1.60".')


class ModelRequest(Model):
    """What one request may send, cost in time, and bring back."""

    max_prompt_bytes: Annotated[StrictInt, Field(ge=0, le=64 << 20)] = Field(
        description="Maximum size of a request as JSON, in bytes."
    )
    max_output_tokens: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = Field(
        description="Maximum number of tokens of an answer that a request may ask for."
    )
    max_answer_bytes: Annotated[StrictInt, Field(ge=0, le=1 << 30)] = Field(
        description="Maximum size of an answer, in bytes."
    )
    seconds: Seconds = Field(description="Timeout of one request from the connection to the last byte, in seconds.")
    finish_reasons: Items[Literal["stop", "length", "content_filter"]] = Field(
        description="Finish reasons of accepted answers: `stop`, complete; `length`, cut at the limit of tokens."
    )
    unmetered_answers: StrictBool = Field(
        description="Whether an answer that does not state its used tokens is accepted."
    )


class ModelRetry(Model):
    """After which errors a request is sent again, how often, and how long after."""

    errors: Items[ModelError] = Field(description="Errors after which a request is sent again.")
    max_attempts: Annotated[StrictInt, Field(ge=1, le=10)] = Field(
        description="Maximum number of requests for one answer."
    )
    first_wait_ms: Milliseconds = Field(
        description="Longest wait before the second request, in milliseconds; doubled before each further one. "
        "A wait is at random between the half and all of it."
    )
    longest_wait_ms: Milliseconds = Field(
        description="No wait is longer. A provider that asks for a longer one with `Retry-After` is not asked again."
    )


class ModelDefaults(Model):
    """A base URL, model and timeout for variables that are not set."""

    base_url: Annotated[str, StringConstraints(pattern=r"^https://[a-z0-9./:_-]+$", max_length=500)] = Field(
        description="Base URL for OPENAI_API_KEY."
    )
    model: ModelName = Field(description="Model where OPENAI_MODEL is not set.")
    timeout_seconds: Seconds = Field(
        description="Timeout of one request, in seconds, where OPENAI_TIMEOUT_SECONDS is not set."
    )


class Llm(Checked):
    """policy/llm.yaml: which remote models may be asked, at what price, and within what limits."""

    providers: Mapping[Word, ModelProvider] = Field(description="Providers by alias, which is what logs contain.")
    models: Mapping[ModelName, RemoteModelRow] = Field(description="Models by name.")
    prices: Mapping[ModelName, Price] = Field(
        description="Prices by model. Without a row the cost of a request is not known, and never zero."
    )
    request: ModelRequest = Field(description="Limits of one request.")
    retry: ModelRetry = Field(description="When a failed request is sent again.")
    defaults: ModelDefaults = Field(description="Defaults of the variables OPENAI_….")

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        seen: dict[tuple[str, int], str] = {}
        for alias, row in self.providers.items():
            for at, name in enumerate(row.models):
                if name not in self.models:
                    remedy = f"add its row under `models`, such as `{name}: {{answers_as: [{name}]}}`"
                    yield value_error(f"no model `{name}`: {remedy}", ("providers", alias, "models", at), name)
            if (other := seen.setdefault((row.host, row.port), alias)) != alias:
                yield value_error(f"`{other}` has this host and port already", ("providers", alias, "host"), row.host)
