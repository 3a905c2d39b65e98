"""No message of the engine looks like a secret: it would be redacted before a person reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.secrets.redaction import redact_text
from tests.conftest import ROOT


def _texts() -> Iterator[str]:
    """Every text that is passed to an error or problem; what is filled in stands as `x`."""
    for path in sorted([*(ROOT / "engine").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("Error", "Problem", "problem")):
                for value in [*call.args, *(word.value for word in call.keywords)]:
                    yield from _stated(value)


def _stated(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in value.values)


def test_no_message_of_the_engine_is_redacted() -> None:
    texts = list(_texts())
    assert len(texts) > 500
    assert redact_text("send `Authorization: Bearer TOKEN`") != "send `Authorization: Bearer TOKEN`"  # the control
    assert [text for text in texts if redact_text(text) != text] == []
