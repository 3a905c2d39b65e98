"""The outcome of a tool call: its result as text for a model, or its failure. Never raises for either."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Literal, Self

from admission_adapters.cuts import without_last_line
from admission_adapters.digests import digest

MESSAGE_CHARACTERS, DETAILS, NAME_CHARACTERS = 4_000, 32, 64
"""Of the message of an error and of each detail; the number of details, and the characters of a name."""

LOOKED_AT = 8_192
"""Bytes behind the limit of a result that are looked at and not shown: half a secret is not recognized."""

_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ToolValidationError(Exception):
    """Raised by a tool for wrong arguments, with a public message, so that a model can correct them.

    `code` is a stable word, `details` are named facts; neither they nor the message may contain a secret or
    a path, or the whole error is withheld (B32).
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = dict(details or {})


@dataclass(frozen=True, slots=True)
class ResultText:
    """The result of a tool: its size as UTF-8, its digest, and its text up to `LOOKED_AT` beyond the limit."""

    bytes: int
    digest: str
    media: Literal["text", "json", "binary"]
    text: str

    @classmethod
    def of(cls, value: Any, most: int) -> Self:
        """Text unchanged, bytes as their digest, anything else as JSON. Raises the encoder's errors."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            return cls(len(data), digest(data), "binary", "")
        plain = isinstance(value, str)
        text = value if plain else _json(value)
        data = str.encode(text, "utf-8", "replace")
        return cls(len(data), digest(data), "text" if plain else "json", cut(data, most + LOOKED_AT))


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that a tool raised. The policy decides who may see `message`."""

    kind: Literal["validation", "other"]
    class_: str
    code: str | None = None
    message: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The failure for an exception; safe against exceptions whose own methods raise."""
        name = type(error).__name__
        class_ = name if _CLASS.fullmatch(name) else "Error"
        if not isinstance(error, ToolValidationError):
            return cls("other", class_, message=_message_of(error))
        try:
            named = islice(error.details.items(), DETAILS)
            details = {_name(_text(str(name))): _shortened(_text(value)) for name, value in named}
            code = error.code if _CODE.fullmatch(error.code) else None
        except BaseException as broken:  # noqa: BLE001  (a subclass may do anything)
            return cls.of(broken) if not isinstance(broken, ToolValidationError) else cls("other", class_)
        return cls("validation", class_, code, _message_of(error), details)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a call: exactly one of the two. `late`: it had not ended at the timeout."""

    result_text: ResultText | None = None
    failure: Failure | None = None
    late: bool = False

    @classmethod
    def failed(cls, error: BaseException) -> Self:
        """The end of a call that raised."""
        return cls(failure=Failure.of(error))

    @classmethod
    def too_late(cls) -> Self:
        """The end of a call that did not end."""
        return cls(failure=Failure("other", "ToolTimeoutError", message="the tool did not end in time"), late=True)

    @classmethod
    def stopped(cls) -> Self:
        """The end of a call that a person stopped."""
        return cls(failure=Failure("other", "ToolStoppedError", message="the tool was stopped"))

    def plain(self) -> dict[str, Any]:
        """As JSON, to leave a process."""
        return asdict(self)

    @classmethod
    def read(cls, stated: Any) -> Self:
        """The inverse of `plain`. Raises ValueError or TypeError."""
        text, failure = stated["result_text"], stated["failure"]
        if (text is None) == (failure is None):
            raise ValueError("neither or both")
        return cls(
            None if text is None else ResultText(**text),
            None if failure is None else Failure(**failure),
            stated["late"],
        )


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        message = "the result has a number without a JSON form, such as NaN; its developer has to return null or text"
        raise ToolValidationError("result_unsupported", message) from None


def cut(data: bytes, most: int) -> str:
    """As much of UTF-8 text as fits into `most` bytes, without a part of a character."""
    return data[:most].decode("utf-8", "ignore")


def _message_of(error: BaseException) -> str | None:
    try:
        return _shortened(_well_formed(str(error)))
    except BaseException:  # noqa: BLE001  (then it has no details)
        return None


def _name(text: str) -> str:
    return text if 0 < len(text) <= NAME_CHARACTERS else "…" if text else "-"


def _shortened(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS else without_last_line(text[:MESSAGE_CHARACTERS])


def _text(value: Any) -> str:
    return _well_formed(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False))


def _well_formed(text: str) -> str:
    """The text without halves of surrogate pairs, which have no UTF-8."""
    return str.encode(text, "utf-8", "replace").decode("utf-8")
