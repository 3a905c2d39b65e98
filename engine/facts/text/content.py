"""What is found in JSON content of others: its words, secrets and private data; and content with these redacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.secrets.forms import SecretForms
from engine.secrets.patterns import find_private, is_secret
from engine.secrets.redaction import is_secret_name, redact_text


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


def _keys(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        yield from content
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for value in inner:
        yield from _keys(value)


def secrets_in(content: Any, forms: SecretForms) -> int:
    """Number of texts that are or contain a key, token or password."""
    named = sum(bool(text) and (is_secret_name(name) or is_secret(text, forms)) for name, text in texts(content))
    return named + sum(is_secret(key, forms) for key in _keys(content))


def private_in(content: Any) -> int:
    """Number of texts with a mail address or the number of a payment card."""
    found = (text for text in (*(text for _, text in texts(content)), *_keys(content)))
    return sum(next(find_private(text), None) is not None for text in found)


def redacted_content(content: Any) -> Any:
    """The same content with every secret, mail address and card number in its texts replaced."""
    if isinstance(content, dict):
        return {redact_text(key): redacted_content(value) for key, value in content.items()}
    if isinstance(content, list):
        return [redacted_content(value) for value in content]
    if isinstance(content, str):
        return redact_text(content)
    if isinstance(content, (int, float)) and not isinstance(content, bool):
        clean = redact_text(str(content))
        return content if clean == str(content) else clean
    return content
