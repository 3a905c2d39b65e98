"""What a proposed code action and the hints beside it are: kinds, sizes, digests, words. Nothing is judged.

Neither the code nor the payload gets into a fact. Absent and unreadable hints say so (`readable: false`), so
that a hint which is lost on the way to the policy is told from one that nobody gave. Rows C02 to C16, C72,
C77, C78, H18, H19.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from typing import Any

from engine.canonical import canonical
from engine.model import Model, Sha256

LARGEST = 2**53 - 1
"""Numbers of hints beyond this are given as this: no larger one survives every JSON reader (RFC 8259)."""

_ID_CHARACTERS = 128
_LANGUAGES = 64
"""Languages of a hint that are looked at; more than there are."""

_DIGITS = 4_000
"""Digits of a number in text; Python turns no more than 4,300 into one."""

_WORD = re.compile(r"[a-z0-9][a-z0-9_+#.-]{0,31}")
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_DIGITS}}}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FIELDS = frozenset({"id", "language", "entrypoint", "code", "input_payload"})


class NameFacts(Model):
    """A field that has to be text; `value` is what it says, trimmed, where it can be an id or a word."""

    text: bool
    blank: bool
    value: str | None = None


class EntrypointFacts(NameFacts):
    """The entry point; `separators` says that a folder could be named by it."""

    separators: bool


class CodeFacts(Model):
    """The code: its characters and bytes as they came, and the digest of its UTF-8; `hash` are 16 digits of it."""

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
    """A proposed action. `further` counts the fields that no action has."""

    object: bool
    id: NameFacts
    language: NameFacts
    entrypoint: EntrypointFacts
    code: CodeFacts
    input_payload: PayloadFacts
    further: int


class NetworkHint(Model):
    """What is asked of the network; `value` is a word in lower case, absent where it was none."""

    stated: bool
    value: str | None = None


class LanguagesHint(Model):
    """Languages in lower case, sorted; those that can be the name of none are left out."""

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
    """The four hints that there are; others are no facts."""

    object: bool
    network_access: NetworkHint
    allowed_languages: LanguagesHint
    max_code_chars: WholeHint
    exec_timeout_seconds: SecondsHint


def action_facts(raw: Any) -> ActionFacts:
    """The facts of an action, whatever came as one."""
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
        further=len(fields.keys() - _FIELDS),
    )


def hint_facts(raw: Any) -> HintFacts:
    """The facts of hints; those of hints that are no object say that there was none."""
    hints: dict[str, Any] = raw if isinstance(raw, dict) else {}
    whole, seconds = _whole(hints.get("max_code_chars")), _seconds(hints.get("exec_timeout_seconds"))
    return HintFacts(
        object=isinstance(raw, dict),
        network_access=_network(hints),
        allowed_languages=_languages(hints.get("allowed_languages")),
        max_code_chars=WholeHint(readable=whole is not None, value=whole),
        exec_timeout_seconds=SecondsHint(readable=seconds is not None, value=seconds),
    )


def _name(value: Any, *, lower: bool = False) -> NameFacts:
    if not isinstance(value, str):
        return NameFacts(text=False, blank=True)
    name = value.strip().lower() if lower else value.strip()
    plain = name != "" and name.isprintable() and len(name) <= _ID_CHARACTERS
    return NameFacts(text=True, blank=name == "", value=name if plain else None)


def _code(value: Any) -> CodeFacts:
    text = value if isinstance(value, str) else ""
    data = text.encode("utf-8")
    found = hashlib.sha256(data).hexdigest()
    return CodeFacts(
        text=isinstance(value, str),
        blank=not text.strip(),
        null_characters="\0" in text,
        chars=len(text),
        bytes=len(data),
        sha256=found,
        hash=found[:16],
    )


def _payload(value: Any) -> PayloadFacts:
    data = canonical(value)
    return PayloadFacts(object=isinstance(value, dict), bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _network(hints: dict[str, Any]) -> NetworkHint:
    """Absent is an answer, null is none: it is not the word `none` (H19)."""
    if "network_access" not in hints:
        return NetworkHint(stated=False)
    value = hints["network_access"]
    word = value.strip().lower() if isinstance(value, str) else ""
    return NetworkHint(stated=True, value=word if _WORD.fullmatch(word) else None)


def _languages(value: Any) -> LanguagesHint:
    usable = [one.strip().lower() for one in value if isinstance(one, str)] if isinstance(value, list) else []
    if not any(usable):
        return LanguagesHint(readable=False)
    words = sorted({word for word in usable if _WORD.fullmatch(word)})
    return LanguagesHint(readable=True, values=tuple(words[:_LANGUAGES]))


def _whole(value: Any) -> int | None:
    """A whole number, a number cut to one, or text that is one."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return max(-LARGEST, min(LARGEST, value))


def _seconds(value: Any) -> float | None:
    """A finite number, or text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and (len(value) > _DIGITS or not _DECIMAL.fullmatch(value.strip())):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return max(-float(LARGEST), min(float(LARGEST), number)) if math.isfinite(number) else None


LEVELS = 64
"""Nested objects and lists of a payload; readers of requests stop before."""


def plain_action(raw: Any) -> Any:
    """An action of a Python caller as JSON can hold it: a field that JSON cannot hold is null, and so is refused.

    Never raises. Null is no text and no object, so the field's own code answers (H18).
    """
    if not isinstance(raw, dict):
        return raw if _is_json(raw, LEVELS) else None
    return {_key(key): value if _is_json(value, LEVELS) else None for key, value in raw.items()}


def plain_hints(raw: Any) -> Any:
    """Hints of a Python caller as JSON can hold them: infinity and NaN are text, what has no form is null.

    Never raises. Both are as unreadable to the policy as they were.
    """
    if not isinstance(raw, dict):
        return raw if _is_json(raw, LEVELS) else None
    return {_key(key): _plain_hint(value) for key, value in raw.items()}


def _plain_hint(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [one if _is_json(one, LEVELS) else None for one in value]
    return value if _is_json(value, LEVELS) else None


def _key(key: Any) -> str:
    """A key that JSON cannot hold is the name of no field."""
    return key if isinstance(key, str) and _encodes(key) else "not a name"


def _is_json(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind is str:
        return _encodes(value)
    if kind is int:
        return int(value).bit_length() <= _DIGITS * 3
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return levels > 0 and all(_is_json(one, levels - 1) for one in value)
    if kind is dict:
        return levels > 0 and _are_names(value) and all(_is_json(one, levels - 1) for one in value.values())
    return value is None or kind is bool


def _are_names(keys: Iterable[Any]) -> bool:
    return all(type(key) is str and _encodes(key) for key in keys)


def _encodes(text: str) -> bool:
    """Half a surrogate pair has no UTF-8."""
    return text.isascii() or not re.search("[\ud800-\udfff]", text)
