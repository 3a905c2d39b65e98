"""Facts about what a proposed tool contract brings along: what looks as if it could be run, and in which form.

A contract is any JSON. What a detector sees is a fact and no judgment: `field` when the field's own name
or value delivers it, `fenced`, `line` and `inline` as `engine.facts.text.proposal_text` reads text. The names
of arguments in a JSON Schema are names of data and deliver nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from engine.facts.text.proposal_text import Form, NestedError, What, is_statement, occurrences, plain
from engine.facts.tools.command_text import NAMED, REFERENCE
from engine.model import Model

CHARACTERS, VALUES, DEPTH = 65_536, 5_000, 32
"""Of one contract, all texts and keys together; a contract is a description, and what is larger is not read."""

HITS = 20
"""Most reported hits of one kind; the first ones are enough."""

_ALWAYS: dict[str, What] = {
    **dict.fromkeys(("code_body", "code_snippet", "function_body", "python", "python_code"), "python_code"),
    **dict.fromkeys(("python_script", "python_source", "snippet", "source_code"), "python_code"),
    **dict.fromkeys(("argv", "bash", "cmd", "command", "commands", "command_line"), "shell_command"),
    **dict.fromkeys(("install_command", "run_command", "setup_command", "start_command"), "shell_command"),
    **dict.fromkeys(("shell", "shell_command", "shell_commands", "shell_script"), "shell_command"),
    **dict.fromkeys(("install_requires", "npm", "package", "package_name", "package_names"), "package_name"),
    **dict.fromkeys(("packages", "pip", "pip_install", "pip_packages", "python_dependencies"), "package_name"),
    **dict.fromkeys(("python_packages", "required_packages", "requirements_txt"), "package_name"),
    **dict.fromkeys(("binary", "callable", "callback", "entry_point", "entrypoint"), "executable_handler"),
    **dict.fromkeys(("executable", "executable_handler", "handler", "handler_code"), "executable_handler"),
    **dict.fromkeys(("handler_module", "handler_path", "handlers", "lambda"), "executable_handler"),
    **dict.fromkeys(("alembic", "database_migration", "ddl", "down_sql", "migration"), "migration"),
    **dict.fromkeys(("migration_sql", "migrations", "schema_migration", "sql_migration", "up_sql"), "migration"),
}
"""Fields whose purpose is to deliver something, whatever they contain."""

_WORD = r"\S+"
"""One word, such as a program; a sentence has more."""

_PROGRAM = re.compile(r"\w[\w.]*\(.*|.*[=;{].*|\S*\.py", re.DOTALL)

_BY_VALUE: dict[str, tuple[What, re.Pattern[str]]] = {
    **dict.fromkeys(("body", "code"), ("python_code", _PROGRAM)),
    **dict.fromkeys(("script", "scripts"), ("python_code", re.compile(rf"{_WORD}|{_PROGRAM.pattern}", re.DOTALL))),
    **dict.fromkeys(("exec", "execute", "run"), ("shell_command", re.compile(_WORD))),
    **dict.fromkeys(("dependencies", "dependency", "deps", "imports", "install"), ("package_name", NAMED)),
    **dict.fromkeys(("libraries", "library", "modules", "requirements"), ("package_name", NAMED)),
    **dict.fromkeys(("function", "hook", "implementation", "module", "target"), ("executable_handler", REFERENCE)),
}
"""Fields that deliver something when their value looks so; a sentence there is only a sentence."""

_PYTHON = frozenset({"body", "code", "implementation", "source"})
"""Fields that deliver Python if their value is a statement; a name or a value is no more than that."""

_NOTHING: tuple[Any, ...] = (None, "", False)
_NONE = re.compile(r"(?i)\s*(?:none|no|n/a|-)\.?\s*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")
_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z_]{0,31}")
_OPAQUE = re.compile(r"(?:f0VMR|TVqQ|UEsDB|AGFzb|yv66v|IyEv)[A-Za-z0-9+/=_-]{40,}")
"""Base64 of what machines run: ELF, Windows, archives, WebAssembly, Java, scripts with their `#!`."""

WHATS: tuple[What, ...] = get_args(What)


class Hit(Model):
    """One hit. `id` is its position: the keys that lead there, and the line; never the content."""

    id: str
    form: Form


@dataclass(slots=True)
class ProposalFacts:
    """The hits by kind. `complete` means that all of the contract was read."""

    hits: dict[What, list[Hit]] = field(default_factory=lambda: {what: [] for what in WHATS})
    complete: bool = True
    _characters: int = 0
    _values: int = 0

    def take(self, text: str) -> bool:
        """Count one value of this length; whether it may still be read."""
        self._characters += len(text)
        self._values += 1
        self.complete = self.complete and self._characters <= CHARACTERS and self._values <= VALUES
        return self.complete

    def add(self, what: What, hit: Hit) -> None:
        """Add a hit, once, up to the limit."""
        if hit not in self.hits[what] and len(self.hits[what]) < HITS:
            self.hits[what].append(hit)


def proposal_facts(contract: dict[str, Any]) -> ProposalFacts:
    """Everything that a contract brings along. Never raises, and stops where it is larger than one may be."""
    facts = ProposalFacts()
    _walk(facts, contract, "contract", 0, names=False)
    return facts


def _walk(facts: ProposalFacts, value: Any, at: str, depth: int, *, names: bool) -> None:
    """`names`: the keys of this mapping are names of arguments, as in the `properties` of a JSON Schema."""
    if depth > DEPTH:
        facts.complete = False
    if not facts.take(value if isinstance(value, str) else ""):
        return
    match value:
        case dict():
            for index, (key, inner) in enumerate(value.items()):
                place = key if _PLAIN_KEY.fullmatch(key) else f"#{index}"
                _entry(facts, key, inner, f"{at}/{place}", depth, names=names)
        case list():
            texts = [text for text in value if isinstance(text, str)]
            if len(texts) == len(value):
                _walk(facts, "\n".join(texts), at, depth + 1, names=False)
                return
            for index, inner in enumerate(value):
                _walk(facts, inner, f"{at}/#{index}", depth + 1, names=False)
        case str():
            _text(facts, value, at, depth)


def _entry(facts: ProposalFacts, key: str, inner: Any, at: str, depth: int, *, names: bool) -> None:
    if not facts.take(key):
        return
    name = _CAMEL.sub("_", plain(key).strip()).lower()
    if not (names and isinstance(inner, (dict, bool))):
        for what in _delivered(name, inner):
            facts.add(what, Hit(id=at, form="field"))
    if _PLAIN_KEY.fullmatch(key) is None:
        _text(facts, key, at, depth)
    _walk(facts, inner, at, depth + 1, names=name in {"properties", "pattern_properties", "$defs", "definitions"})


def _delivered(name: str, value: Any) -> Iterator[What]:
    if value in _NOTHING or value in ([], {}) or (isinstance(value, str) and _NONE.fullmatch(value)):
        return
    if name in _ALWAYS:
        yield _ALWAYS[name]
    if name in _BY_VALUE:
        what, pattern = _BY_VALUE[name]
        named = isinstance(value, dict) and what == "package_name"
        values = value if isinstance(value, list) else list(value) if named else [value]
        texts = [plain(text).strip()[:2_000] for text in values if isinstance(text, str)]
        if any(map(pattern.fullmatch, texts)):
            yield what
    if name in _PYTHON and isinstance(value, str) and is_statement(plain(value).strip()):
        yield "python_code"


def _with_repeated(pairs: list[tuple[str, Any]]) -> Any:
    """An object; one with a key twice as a list, so that nothing of it is left out."""
    value = dict(pairs)
    return value if len(value) == len(pairs) else [{key: inner} for key, inner in pairs]


def _text(facts: ProposalFacts, text: str, at: str, depth: int) -> None:
    if _OPAQUE.match(text):
        facts.add("executable_handler", Hit(id=at, form="field"))
    if text.lstrip()[:1] in {"{", "["}:
        try:
            inner = json.loads(text, object_pairs_hook=_with_repeated)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, (dict, list)):
            _walk(facts, inner, at, depth + 1, names=False)
    try:
        for what, form, line in occurrences(text):
            facts.add(what, Hit(id=f"{at}:{line}", form=form))
    except NestedError:
        facts.complete = False
