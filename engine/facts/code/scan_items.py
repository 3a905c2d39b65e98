"""The facts of a code scan, in one shape for every language: names and kinds of text, never content.

Lists contain each item once, sorted by id; a flag that is true is never the harmless case. Row C65.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import defaultdict
from collections.abc import Callable
from typing import Literal, TypeVar

from engine.facts.text.disguises import names_a_path
from engine.facts.text.hidden import hidden_in
from engine.model import Model, Named

ModelT = TypeVar("ModelT", bound=Model)

CODE_BYTES = 65_536
"""Of one program in UTF-8; a contract admits a few thousand characters, and parsers are linear in this."""

NODES = 50_000
"""Of one syntax tree: what is remembered of it stays below about 50 MiB."""

DEPTH = 200
"""Of nesting in a syntax tree; a chain of as many operators is as deep, and people write 20."""

ITEMS = 1_000
"""Different things in one list; a program of a few thousand characters has about 50."""

Problem = Literal["syntax", "too_large", "too_deep", "no_scanner"]
"""Why there are no facts: no program of its language, more than a scan reads, or a language without a scanner."""


class Import(Model):
    """An imported module by its top-level name, or `relative`, or `computed` if no literal names it."""

    id: str
    kind: Literal["module", "relative", "computed"]


class Member(Model):
    """What is taken out of an imported module: the first name below it; `*` is all of them.

    `top` is the module as `imports` has it, of which `module` may be a part: `a` of `a.b`.
    """

    id: str
    top: str
    module: str
    name: str


class ModuleUse(Model):
    """An imported module: whether it is also used as a value, which hides the members in use."""

    id: str
    top: str
    as_value: bool


class Call(Model):
    """What is called, by its own name or as an attribute of something; `builtin` is of the name."""

    id: str
    by_name: bool
    by_attribute: bool
    builtin: bool


class Attribute(Model):
    """An attribute that is named somewhere, in a pattern too. Two underscores in front make a dunder."""

    id: str
    dunder: bool


class Name(Model):
    """An identifier: read or written as a variable, used other than in a call, or only bound."""

    id: str
    variable: bool
    as_value: bool
    dunder: bool
    builtin: bool
    bound: bool


class ScanFacts(Model):
    """The facts of a scan. `complete` means that all of the code was scanned; otherwise the lists are empty.

    `network_literals` counts web addresses in the text, comments included. `input_calls` counts calls that
    read the input, `input_values` uses of the reader other than a call. `literals` and `computed` are kinds of texts
    and constructs that occur, `encodings` what the code declares.
    """

    language: str
    parsed: bool
    complete: bool
    problem: Problem | None = None
    imports: tuple[Import, ...] = ()
    members: tuple[Member, ...] = ()
    modules: tuple[ModuleUse, ...] = ()
    calls: tuple[Call, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    names: tuple[Name, ...] = ()
    literals: tuple[Named, ...] = ()
    computed: tuple[Named, ...] = ()
    encodings: tuple[Named, ...] = ()
    network_literals: int = 0
    input_calls: int = 0
    input_values: int = 0


Lines = dict[str | None, int]
"""The first line on which each thing in the facts is, such as `calls/eval`; under None, that of a wrong syntax.

Of what is counted, under the name of the fact: the first web address, the last use of the reader.
"""

SCAN = "scan."


class ScanError(Exception):
    """The code has no facts, for this reason; never leaves the scan."""

    def __init__(self, problem: Problem, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem: Problem = problem
        self.line = line


_PLAIN = re.compile(r"[A-Za-z0-9_$.*-]{1,64}")
_HEX = 12


def safe(name: str) -> str:
    """A name as an id: itself if it is short and plain, else `#` and a prefix of its digest."""
    if _PLAIN.fullmatch(name):
        return name
    return "#" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]


class Collector:
    """Collects what a scanner sees, each thing once. Raises ScanError where there are too many.

    `line` is the one that is looked at; 0 if it is unknown.
    """

    def __init__(self, lines: Lines) -> None:
        self.line = 0
        self._lines = lines
        self.network_literals = 0
        self.input_calls = 0
        self.input_values = 0
        self._kinds: dict[str, Literal["module", "relative", "computed"]] = {}
        self._members: dict[str, tuple[str, str]] = {}
        self._flags: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def imported(self, module: str, kind: Literal["module", "relative", "computed"] = "module") -> None:
        """A module by its top-level name; what is not a module stays the worse one."""
        if self._kinds.get(module, "module") == "module":
            self._kinds[module] = kind
        self._seen("imports", module)
        _bounded(len(self._kinds))

    def member(self, module: str, name: str) -> None:
        """What is taken out of a module."""
        self._members[f"{module}.{name}"] = (module, name)
        self._seen("members", f"{module}.{name}")
        _bounded(len(self._members))

    def add(self, where: str, name: str, **flags: bool) -> None:
        """One more sight of a thing; flags once seen stay."""
        found = self._flags[where]
        found[name].update(flag for flag, seen in flags.items() if seen)
        self._seen(where, name)
        _bounded(len(found))

    def _seen(self, where: str, name: str) -> None:
        if self.line:
            thing = f"{where}/{safe(name)}"
            self._lines[thing] = min(self.line, self._lines.get(thing, self.line))

    def source(self, code: str) -> None:
        """All of the text, comments included: its web addresses, and what readers of it do not see."""
        self.network_literals = web_addresses(code)
        if self.network_literals and (first := _WEB.search(low := code.lower())) is not None:
            self._lines[f"{SCAN}network_literals"] = low.count("\n", 0, first.start()) + 1
        if (at := next(hidden_in(code), None)) is not None:
            self.line = code.count("\n", 0, at) + 1
            self.add("literals", "hidden")
            self.line = 0

    def text(self, text: str) -> None:
        """A string of the program, taken as a whole."""
        if web_addresses(text) and not self.network_literals:  # one that its text spells with escapes
            self.network_literals += 1
            self._lines[f"{SCAN}network_literals"] = self.line
        for kind in kinds(text):
            self.add("literals", kind)

    def reads(self, *, call: bool = False, value: bool = False) -> None:
        """A use of the reader of the input, if it is one; the last one is the one too many."""
        self.input_calls += call
        self.input_values += value
        if call or value:
            self._lines[f"{SCAN}input_calls"] = max(self.line, self._lines.get(f"{SCAN}input_calls", 0))

    def facts(self, language: str) -> ScanFacts:
        """All of it, sorted."""
        seen = self._flags
        return ScanFacts(
            language=language,
            parsed=True,
            complete=True,
            imports=tuple(Import(id=safe(name), kind=kind) for name, kind in sorted(self._kinds.items())),
            members=tuple(
                Member(id=safe(name), top=safe(_top(module)), module=safe(module), name=safe(member))
                for name, (module, member) in sorted(self._members.items())
            ),
            modules=_items(ModuleUse, seen["modules"], top=lambda name: safe(_top(name))),
            calls=_items(Call, seen["calls"]),
            attributes=_items(Attribute, seen["attributes"], dunder=_is_dunder),
            names=_items(Name, seen["names"], dunder=_is_dunder),
            literals=_items(Named, seen["literals"]),
            computed=_items(Named, seen["computed"]),
            encodings=_items(Named, seen["encodings"]),
            network_literals=self.network_literals,
            input_calls=self.input_calls,
            input_values=self.input_values,
        )


def _items(
    model: type[ModelT], seen: dict[str, set[str]], **computed: Callable[[str], str | bool]
) -> tuple[ModelT, ...]:
    """Each name as an item of this model; fields that are not computed from the name are flags."""
    flags = model.model_fields.keys() - {"id", *computed}
    found = []
    for name, marks in sorted(seen.items()):
        own = {field: compute(name) for field, compute in computed.items()}
        found.append(model.model_validate({"id": safe(name), **own, **{flag: flag in marks for flag in flags}}))
    return tuple(found)


def _is_dunder(name: str) -> bool:
    """Whether a name begins with two underscores; what it ends with does not matter (C25)."""
    return name.startswith("__")


def _top(module: str) -> str:
    return module.partition(".")[0]


def _bounded(count: int) -> None:
    if count > ITEMS:
        raise ScanError("too_large")


_WEB = re.compile(r"https?://")
_WHOLE = re.compile(r"https?://\S*", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<![A-Za-z0-9+.-])(?!https?://)[A-Za-z][A-Za-z0-9+.-]{1,15}://")
_DUNDER = re.compile(r"(?<!\w)__[A-Za-z]")
_FIELDS = 200
_PREFIXES = 2


def web_addresses(text: str) -> int:
    """The number of web addresses in a text, in any letter case (C26)."""
    return sum(1 for _ in _WEB.finditer(text.lower()))


def kinds(text: str) -> set[str]:
    """What a string literal is, beside plain text; http and https are counted by `web_addresses` alone."""
    found = set()
    if _ADDRESS.search(text.lower()):
        found.add("url")
    if names_a_path(_WHOLE.sub(" ", text)):
        found.add("path")
    if _DUNDER.search(text):
        found.add("dunder")
    return found


def reaches(text: str, rounds: int = _PREFIXES) -> bool:
    """Whether `text`, as a format string, would access attributes or items of its arguments.

    A field may be nested in the format of another, up to two levels as in `str.format`.
    """
    try:
        for count, (_, name, spec, _) in enumerate(string.Formatter().parse(text)):
            if count > _FIELDS:
                return True
            if name is not None and ("." in name or "[" in name):
                return True
            if spec and "{" in spec and (rounds == 0 or reaches(spec, rounds - 1)):
                return True
    except ValueError:
        return False  # no format string: `format` would raise
    return False
