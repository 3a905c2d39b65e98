"""The variables of the remote model, and the one object that holds its key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from engine.errors import GatherError
from engine.model import ProviderSettings

BASE_URL, KEY, MODEL = "AGENT_DATA_LLM_BASE_URL", "AGENT_DATA_API_KEY", "AGENT_DATA_LLM_MODEL"
OPENAI_KEY, OPENAI_MODEL, TIMEOUT = "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_TIMEOUT_SECONDS"
VARIABLES = (BASE_URL, KEY, MODEL, OPENAI_KEY, OPENAI_MODEL, TIMEOUT)
"""No process that the engine starts gets one of them."""

_KEY_FORM = re.compile(r"[\x21-\x7e]{8,4096}")
"""A key as a header can carry it; a shorter one would be found in ordinary text."""

_MODEL_FORM, _SECONDS_FORM = re.compile(r"[\x21-\x7e]{1,128}"), re.compile(r"[1-9][0-9]{0,3}")
_FORMS = {
    **dict.fromkeys((KEY, OPENAI_KEY), _KEY_FORM),
    **dict.fromkeys((MODEL, OPENAI_MODEL), _MODEL_FORM),
    TIMEOUT: _SECONDS_FORM,
}

_FILE_BYTES = 64 << 10
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")


def without_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that the engine starts: this one without those variables."""
    return {name: value for name, value in environment.items() if name not in VARIABLES}


class ProviderKey:
    """The key of the remote model. It prints as redacted and is never pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "[redacted]"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("the key of the remote model is not copied or pickled")

    def found_in(self, *texts: str | bytes) -> bool:
        """Whether one of these contains the key."""
        found = (one if isinstance(one, str) else one.decode("latin-1") for one in texts)
        return any(self._text in one for one in found)

    def register(self, secret: Callable[[str], None]) -> None:
        """Give the key to what finds secrets in texts."""
        secret(self._text)

    def header(self) -> str:
        """The value of the one header that carries it."""
        return f"Bearer {self._text}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The configured remote model: its settings, and its key, None if that is not set or cannot be used."""

    settings: ProviderSettings
    key: ProviderKey | None

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, file: Path | None = None) -> Provider:
        """From the variables, and those in a `.env` file, which a variable that is set outranks.

        Any of the AGENT_DATA variables selects all three; otherwise OPENAI_API_KEY selects OPENAI's.
        Raises GatherError for a file that cannot be read.
        """
        found = {} if file is None else _file(file)
        found |= {name: environment[name] for name in VARIABLES if name in environment}
        stated = {name: text.strip() for name, text in found.items() if text.strip()}
        openai = OPENAI_KEY in stated and not stated.keys() & {BASE_URL, KEY, MODEL}
        key_name, model_name = (OPENAI_KEY, OPENAI_MODEL) if openai else (KEY, MODEL)
        needed = (OPENAI_KEY,) if openai else (BASE_URL, KEY, MODEL)
        text = stated.get(key_name, "")
        key = ProviderKey(text) if _KEY_FORM.fullmatch(text) else None
        usable = {
            name: text
            for name, text in stated.items()
            if _fits(name, text) and (name == key_name or key is None or not key.found_in(text))
        }
        names = dict.fromkeys((*needed, *(name for name in (model_name, TIMEOUT) if name in stated)))
        settings = ProviderSettings(
            missing=tuple(name for name in names if name not in usable),
            base_url=usable.get(BASE_URL),
            model=usable.get(model_name),
            timeout_seconds=int(usable[TIMEOUT]) if TIMEOUT in usable else None,
            defaults=openai,
        )
        return cls(settings, key)


def _fits(name: str, text: str) -> bool:
    form = _FORMS.get(name)
    return form is None or form.fullmatch(text) is not None


def _file(path: Path) -> dict[str, str]:
    """The variables of the remote model in a `.env` file; others are left out. Raises GatherError."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GatherError(
            "the file of variables cannot be read", remedy="name a text file of lines such as NAME=value"
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (stripped := line.strip()) or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise GatherError(
                f"line {number} of the file of variables has no value", remedy="write each line as NAME=value"
            )
        if match[1] in VARIABLES:
            found[match[1]] = _unquoted(match[2])
    return found


def _unquoted(text: str) -> str:
    for quote in "\"'":
        if text.startswith(quote) and (end := text.find(quote, 1)) > 0:
            return text[1:end]
    return re.split(r"[ \t]#", text)[0].strip()
