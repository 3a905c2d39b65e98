"""What may be told of a program's output when it failed: little, on one line, and none of the code or payload.

A secret is taken out before the text is cut, because half a secret looks like none (C36, C83).
"""

from __future__ import annotations

import json
from typing import Any

from engine.record.redaction import redact_text

CHARACTERS = 200

_CODE = "[code]"
_PAYLOAD = "[payload]"
_WORD = 8
"""Characters of a text in the payload that stays; shorter ones are ordinary words."""


def snippets(stdout: str, stderr: str, code: str, payload: str) -> dict[str, str]:
    """`stderr_snippet` and `stdout_snippet`, those that are not empty."""
    found = {"stderr_snippet": snippet(stderr, code, payload), "stdout_snippet": snippet(stdout, code, payload)}
    return {name: text for name, text in found.items() if text}


def snippet(text: str, code: str, payload: str) -> str:
    """The beginning of a text as one line of at most `CHARACTERS`; empty where there is nothing to tell.

    An interpreter shows the line of the code in which something went wrong; that line stays here. So do the
    texts in the payload, the long ones first, but for words that are too short to tell anything.
    """
    for own, mark in ((code.strip(), _CODE), (payload.strip(), _PAYLOAD)):
        text = text.replace(own, mark) if own else text
    for own in _told_of(payload, text):
        text = text.replace(own, _PAYLOAD)
    lines = {line.strip() for line in code.splitlines()} - {""}
    shown = [_CODE if line.strip() in lines else line for line in text.splitlines()]
    flat = "".join(one if one.isprintable() else " " for one in redact_text("\n".join(shown)).strip())
    return flat[:CHARACTERS].strip()


def _told_of(payload: str, text: str) -> list[str]:
    """The texts of the payload that stand in another one, as they are or as JSON and Python write them; long first."""
    starts = {text[at : at + _WORD] for at in range(len(text))}
    left: list[Any] = [json.loads(payload or "null")]
    found = set()
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str) and len(own := one.strip()) >= _WORD:
            found |= {form for form in _forms(own) if form[:_WORD] in starts and form in text}
    return sorted(found, key=lambda form: (-len(form), form))


def _forms(own: str) -> tuple[str, ...]:
    if own.isascii() and own.isprintable() and not set(own) & set("\\\"'"):
        return (own,)
    return own, json.dumps(own)[1:-1], json.dumps(own, ensure_ascii=False)[1:-1], repr(own)[1:-1]
