"""Facts about a proposed code action and its hints: kinds, sizes, digests, words. Nothing is judged.

Neither the code nor the payload gets into a fact. Absent and unreadable hints are marked (`readable: false`), so
that the policy distinguishes a lost hint from one that was not sent. Rows C02 to C16, C72,
C77, C78, H18, H19.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

from engine.documents.canonical import canonical
from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.code.boundaries import Stated
from engine.facts.code.outputs import DECIMAL
from engine.facts.text.hidden import is_blank
from engine.model import Model, Sha256

_ID_CHARACTERS = 128
_LANGUAGES = 64
"""Languages of a hint that are looked at; more than there are."""

_DIGITS = 4_000
"""Digits of a number in text; Python turns no more than 4,300 into one."""

_WORD = re.compile(r"[a-z0-9][a-z0-9_+#.-]{0,31}")
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_DIGITS}}}")
_FIELDS = frozenset({"id", "language", "entrypoint", "code", "input_payload"})


class NameFacts(Model):
    """A field that must be text; `value` is its trimmed text, if that is a valid id or word."""

    text: bool
    blank: bool
    value: str | None = None


class EntrypointFacts(NameFacts):
    """The entry point; `separators` is true if it could name a folder."""

    separators: bool


class CodeFacts(Model):
    """The code: its characters and bytes, unchanged, and the digest of its UTF-8; `hash` has the first 16 digits."""

    text: bool
    blank: bool
    null_characters: bool
    chars: int
    bytes: int
    sha256: Sha256
    hash: str


class PayloadFacts(Model):
    """What the program reads: the size and the digest of its canonical JSON."""

    object: bool
    bytes: int
    sha256: Sha256


class ActionFacts(Model):
    """A proposed action. `unknown_fields` counts the fields that are not those of an action."""

    object: bool
    id: NameFacts
    language: NameFacts
    entrypoint: EntrypointFacts
    code: CodeFacts
    input_payload: PayloadFacts
    unknown_fields: int


class LanguagesHint(Model):
    """Languages in lower case, sorted; invalid names are left out."""

    readable: bool
    values: tuple[str, ...] | None = None


class WholeHint(Model):
    """A whole number."""

    readable: bool
    value: int | None = None


class SecondsHint(Model):
    """A number of seconds."""

    readable: bool
    value: float | None = None


class HintFacts(Model):
    """The four known hints; others are ignored. Requested network access has a value only if it is a word."""

    object: bool
    network_access: Stated
    allowed_languages: LanguagesHint
    max_code_chars: WholeHint
    exec_timeout_seconds: SecondsHint


def action_facts(raw: Any) -> ActionFacts:
    """The facts of an action. Accepts any JSON value."""
    fields: dict[str, Any] = raw if isinstance(raw, dict) else {}
    entrypoint = fields.get("entrypoint")
    return ActionFacts(
        object=isinstance(raw, dict),
        id=_name(fields.get("id")),
        language=_name(fields.get("language"), lower=True),
        entrypoint=EntrypointFacts(
            **_name(entrypoint).model_dump(),
            separators=isinstance(entrypoint, str) and ("/" in entrypoint or "\\" in entrypoint),
        ),
        code=_code(fields.get("code")),
        input_payload=_payload(fields.get("input_payload")),
        unknown_fields=len(fields.keys() - _FIELDS),
    )


def hint_facts(raw: Any) -> HintFacts:
    """The facts of hints; hints that are no object count as absent."""
    hints: dict[str, Any] = raw if isinstance(raw, dict) else {}
    max_chars, seconds = _integer(hints.get("max_code_chars")), _seconds(hints.get("exec_timeout_seconds"))
    return HintFacts(
        object=isinstance(raw, dict),
        network_access=_network(hints),
        allowed_languages=_languages(hints.get("allowed_languages")),
        max_code_chars=WholeHint(readable=max_chars is not None, value=max_chars),
        exec_timeout_seconds=SecondsHint(readable=seconds is not None, value=seconds),
    )


def _name(value: Any, *, lower: bool = False) -> NameFacts:
    if not isinstance(value, str):
        return NameFacts(text=False, blank=True)
    name = value.strip().lower() if lower else value.strip()
    plain = name != "" and name.isprintable() and len(name) <= _ID_CHARACTERS
    return NameFacts(text=True, blank=is_blank(name), value=name if plain else None)


def _code(value: Any) -> CodeFacts:
    text = value if isinstance(value, str) else ""
    data = text.encode("utf-8")
    found = hashlib.sha256(data).hexdigest()
    return CodeFacts(
        text=isinstance(value, str),
        blank=is_blank(text),
        null_characters="\0" in text,
        chars=len(text),
        bytes=len(data),
        sha256=found,
        hash=found[:16],
    )


def _payload(value: Any) -> PayloadFacts:
    data = canonical(value)
    return PayloadFacts(object=isinstance(value, dict), bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _network(hints: dict[str, Any]) -> Stated:
    """Absent is a valid answer; null is not, and is not the word `none` (H19)."""
    if "network_access" not in hints:
        return Stated(stated=False)
    value = hints["network_access"]
    word = value.strip().lower() if isinstance(value, str) else ""
    return Stated(stated=True, value=word if _WORD.fullmatch(word) else None)


def _languages(value: Any) -> LanguagesHint:
    usable = [name.strip().lower() for name in value if isinstance(name, str)] if isinstance(value, list) else []
    if not any(usable):
        return LanguagesHint(readable=False)
    words = sorted({word for word in usable if _WORD.fullmatch(word)})
    return LanguagesHint(readable=True, values=tuple(words[:_LANGUAGES]))


def _integer(value: Any) -> int | None:
    """A whole number, a number cut to one, or text that is one."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return max(-MAX_SAFE_INTEGER, min(MAX_SAFE_INTEGER, value))


def _seconds(value: Any) -> float | None:
    """A finite number, or text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and (len(value) > _DIGITS or not DECIMAL.fullmatch(value.strip())):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return max(-float(MAX_SAFE_INTEGER), min(float(MAX_SAFE_INTEGER), number)) if math.isfinite(number) else None
