"""A request for a chat completion as it goes over the wire, and where to: built once, for its digest and for work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.documents.canonical import canonical
from engine.facts.net.urls import UrlFacts, url_facts

_PATH = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an attempt sends: the address and the body. The prompt is in the body and nowhere else."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)


def prepared(
    base_url: str, model: str, messages: Sequence[Mapping[str, str]], max_output_tokens: int, *, stream: bool
) -> Prepared:
    """The request in the form of OpenAI's chat completions; a stream is asked for its usage too."""
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    body = {"model": model, "messages": list(messages), "max_tokens": max_output_tokens, **streamed}
    return Prepared(_endpoint(base_url), canonical(body))


def endpoint_facts(base_url: str) -> UrlFacts:
    """The facts of the address below a base URL, which has no query."""
    return UrlFacts(canonical=False) if "?" in base_url else url_facts(_endpoint(base_url))


def _endpoint(base_url: str) -> str:
    return base_url.rstrip("/") + _PATH
