"""What may be told of a program's output when it failed: little, on one line, and none of the code or payload.

A secret is taken out before the text is cut, because half a secret looks like none (C36, C83).
"""

from __future__ import annotations

from engine.record.redaction import redact_text

CHARACTERS = 200

_CODE = "[code]"
_PAYLOAD = "[payload]"


def snippets(stdout: str, stderr: str, code: str, payload: str) -> dict[str, str]:
    """`stderr_snippet` and `stdout_snippet`, those that are not empty."""
    found = {"stderr_snippet": snippet(stderr, code, payload), "stdout_snippet": snippet(stdout, code, payload)}
    return {name: text for name, text in found.items() if text}


def snippet(text: str, code: str, payload: str) -> str:
    """The beginning of a text as one line of at most `CHARACTERS`; empty where there is nothing to tell.

    An interpreter shows the line of the code in which something went wrong; that line stays here.
    """
    for own, mark in ((code.strip(), _CODE), (payload.strip(), _PAYLOAD)):
        text = text.replace(own, mark) if own else text
    lines = {line.strip() for line in code.splitlines()} - {""}
    shown = [_CODE if line.strip() in lines else line for line in text.splitlines()]
    flat = "".join(one if one.isprintable() else " " for one in redact_text("\n".join(shown)).strip())
    return flat[:CHARACTERS].strip()
