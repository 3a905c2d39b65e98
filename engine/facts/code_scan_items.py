"""What a scan of generated code found, in one shape for every language: names of things, never their content.

Lists hold each thing once, sorted by its id; a flag that is true is never the harmless one. Row C65.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import Literal

from engine.model import Model

CODE_BYTES = 65_536
"""Of one program in UTF-8; a contract admits a few thousand characters, and parsers are linear in this."""

NODES = 50_000
"""Of one syntax tree: what is remembered of it stays below about 50 MiB."""

DEPTH = 200
"""Of nesting in a syntax tree; a chain of as many operators is as deep, and people write 20."""

ITEMS = 1_000
"""Different things in one list; a program of a few thousand characters has about 50."""

Problem = Literal["syntax", "too_large", "too_deep", "no_scanner"]
"""Why there are no facts: no program of its language, more than a scan reads, or a language nobody scans."""


class Import(Model):
    """A module that is imported, by its top-level name, or `relative`, or `computed` where no text says which."""

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
    """An imported module: whether it is also used as a value, so that nobody sees what is taken out of it."""

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
    """An identifier: read or written as a variable, used other than as what is called, or only given to something."""

    id: str
    variable: bool
    as_value: bool
    dunder: bool
    builtin: bool
    bound: bool


class Kind(Model):
    """A kind of text or construct that occurs; the text itself stays where it is."""

    id: str


class ScanFacts(Model):
    """What was found. `complete` says that all of the code was looked at; without it the lists are empty.

    `network_literals` counts web addresses in the text, comments included. `input_calls` counts calls that
    read the input, `input_values` uses of the reader other than a call. `encoding` is what the code declares.
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
    literals: tuple[Kind, ...] = ()
    computed: tuple[Kind, ...] = ()
    encodings: tuple[Kind, ...] = ()
    network_literals: int = 0
    input_calls: int = 0
    input_values: int = 0


class ScanError(Exception):
    """The code has no facts, for this reason; never leaves the scan."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem: Problem = problem


_PLAIN = re.compile(r"[A-Za-z0-9_$.*-]{1,64}")
_HEX = 12


def safe(name: str) -> str:
    """A name as an id: itself where it is short and plain, else `#` and the beginning of its digest."""
    if _PLAIN.fullmatch(name):
        return name
    return "#" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]


class Found:
    """Collects what a scanner sees, each thing once. Raises ScanError where there are too many."""

    def __init__(self) -> None:
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
        _bounded(len(self._kinds))

    def member(self, module: str, name: str) -> None:
        """What is taken out of a module."""
        self._members[f"{module}.{name}"] = (module, name)
        _bounded(len(self._members))

    def add(self, where: str, name: str, *flags: str) -> None:
        """One more sight of a thing; flags once seen stay."""
        found = self._flags[where]
        found[name].update(flags)
        _bounded(len(found))

    def facts(self, language: str) -> ScanFacts:
        """All of it, sorted."""
        flags = self._flags
        return ScanFacts(
            language=language,
            parsed=True,
            complete=True,
            imports=tuple(Import(id=safe(name), kind=kind) for name, kind in sorted(self._kinds.items())),
            members=tuple(
                Member(id=safe(name), top=safe(_top(module)), module=safe(module), name=safe(member))
                for name, (module, member) in sorted(self._members.items())
            ),
            modules=tuple(
                ModuleUse(id=safe(name), top=safe(_top(name)), as_value="as_value" in seen)
                for name, seen in sorted(flags["modules"].items())
            ),
            calls=tuple(
                Call(
                    id=safe(name),
                    by_name="by_name" in seen,
                    by_attribute="by_attribute" in seen,
                    builtin="builtin" in seen,
                )
                for name, seen in sorted(flags["calls"].items())
            ),
            attributes=tuple(Attribute(id=safe(name), dunder=dunder(name)) for name in sorted(flags["attributes"])),
            names=tuple(
                Name(
                    id=safe(name),
                    variable="variable" in seen,
                    as_value="as_value" in seen,
                    dunder=dunder(name),
                    builtin="builtin" in seen,
                    bound="bound" in seen,
                )
                for name, seen in sorted(flags["names"].items())
            ),
            literals=_kinds(flags["literals"]),
            computed=_kinds(flags["computed"]),
            encodings=_kinds(flags["encodings"]),
            network_literals=self.network_literals,
            input_calls=self.input_calls,
            input_values=self.input_values,
        )


def dunder(name: str) -> bool:
    """Whether a name begins with two underscores; what it ends with does not matter (C25)."""
    return name.startswith("__")


def _top(module: str) -> str:
    return module.partition(".")[0]


def _kinds(seen: dict[str, set[str]]) -> tuple[Kind, ...]:
    return tuple(Kind(id=safe(name)) for name in sorted(seen))


def _bounded(count: int) -> None:
    if count > ITEMS:
        raise ScanError("too_large")
