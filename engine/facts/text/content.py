"""What is found in JSON content of others: its words, secrets and private data; and content with these redacted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from engine.facts.text.hidden import hidden_in
from engine.facts.text.instructions import Markers
from engine.secrets.forms import SecretForms
from engine.secrets.names import FreeNames
from engine.secrets.patterns import find_credentials, find_private, is_secret, known_forms
from engine.secrets.redaction import is_secret_name, replaced

MARK = "[redacted]"
"""The same for all that is taken out: what can be guessed could be recognized by a digest."""

_STEP = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""A name that is shown in a path."""


def texts(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of JSON content, but for its keys, with the key that it is under; a number is a text too."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from texts(value, key)
    elif isinstance(content, list):
        for value in content:
            yield from texts(value, name)
    elif isinstance(content, str):
        yield name, content
    elif content is not None and not isinstance(content, bool):
        yield name, str(content)


def keys(content: Any) -> Iterator[str]:
    """Every key of JSON content, at any depth."""
    if isinstance(content, dict):
        yield from content
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for value in inner:
        yield from keys(value)


def steering_in(content: Any, markers: Markers) -> tuple[int, int]:
    """Number of hidden characters, and of instructions to a model, in what only informs it."""
    found = [text for _, text in texts(content)]
    return sum(1 for text in found for _ in hidden_in(text)), sum(markers.count(text) for text in found)


def places_of(content: Any, found: Callable[[str, str], bool], way: str = "content", name: str = "") -> Iterator[str]:
    """Paths of the texts and names of JSON content of which `found` is true, told of a text and the name it is under.

    A name that may be content itself is `*`.
    """
    if isinstance(content, dict):
        for key, value in content.items():
            inner = f"{way}.{key if _STEP.fullmatch(key) and not found('', key) else '*'}"
            if found("", key):
                yield f"the name {inner}"
            yield from places_of(value, found, inner, key)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from places_of(value, found, f"{way}.{index}", name)
    elif any(found(name, text) for _, text in texts(content)):
        yield way


def has_secret(name: str, text: str, forms: SecretForms) -> bool:
    """Whether a text under this name is or contains a key, token or password."""
    return bool(text) and (is_secret_name(name) or is_secret(text, forms))


def has_private(text: str) -> bool:
    """Whether a text contains private data, as `find_private` finds it."""
    return next(find_private(text), None) is not None


def secrets_in(content: Any, forms: SecretForms) -> int:
    """Number of texts that are or contain a key, token or password."""
    named = sum(has_secret(name, text, forms) for name, text in texts(content))
    return named + sum(is_secret(key, forms) for key in keys(content))


def private_in(content: Any) -> int:
    """Number of texts with private data."""
    return sum(map(has_private, (*(text for _, text in texts(content)), *keys(content))))


def redacted_content(content: Any) -> Any:
    """The same content with every key, token and password and all private data in its texts replaced."""
    return rewritten(content, _marked, numbers=True)


def rewritten(content: Any, change: Callable[[str], str], *, numbers: bool = False) -> Any:
    """JSON content with its texts and keys changed, each once and in order, and its numbers as texts where asked.

    A changed key that equals another key gets `+` at its end.
    """
    if isinstance(content, dict):
        names, made = FreeNames(content), {}
        for key, value in content.items():
            name = change(key)
            made[key if key == name else names.of(name)] = rewritten(value, change, numbers=numbers)
        return made
    if isinstance(content, list):
        return [rewritten(value, change, numbers=numbers) for value in content]
    if not isinstance(content, str) and (not numbers or content is None or isinstance(content, bool)):
        return content
    changed = change(str(content))
    return content if changed == str(content) else changed


def _marked(text: str) -> str:
    clean = replaced(text, find_credentials(text, known_forms()), lambda _: MARK)
    return replaced(clean, find_private(clean), lambda _: MARK)
