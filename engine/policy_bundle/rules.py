"""Rule sources to what is served: read, refused or accepted, generated, checked as a whole."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from pydantic import ConfigDict, RootModel

from engine.documents.canonical import digest
from engine.documents.files import Document, printable
from engine.errors import Location, Problem
from engine.opa.command import OpaCommand
from engine.policy_bundle import added, archives, explain, generate, points, requirements, schemas, unreachable
from engine.policy_bundle.bodies import Lint
from engine.policy_bundle.catalogue import Catalogue, Proof, Requirement
from engine.policy_bundle.checks import (
    COMMON,
    PARAMETERS,
    Kind,
    RuleFile,
    Signature,
    allowed,
    module_problems,
    patterns,
    place,
    signatures,
    test_place,
)
from engine.policy_bundle.parsing import Parser, opa_problems
from engine.policy_bundle.points import PointRules
from engine.policy_bundle.schemas import HEAD, Schema, annotated, common, policy, union
from engine.policy_bundle.scratch import scratch
from engine.policy_bundle.sources import Snapshot
from engine.policy_bundle.syntax import Module
from engine.policy_bundle.values import is_blank, schema_of
from engine.values import DERIVED

_ROUTER = "admission/main.rego"


def compile_rules(
    taken: Snapshot,
    inputs: Mapping[str, Schema],
    documents: Mapping[str, Schema],
    opa: OpaCommand,
    found: list[Problem],
    own: Document | None,
) -> tuple[bytes, bytes] | None:
    """The archive of rules and the catalogue beside it; None with every reason in `found` otherwise.

    Rules may read the input of their point and the documents of values, according to these schemas; `own` are the
    parameters of added rules.
    """
    before = len(found)
    with scratch() as folder:
        build = _Build(taken, inputs, documents, opa, folder, found, own)
        read = build.read()
        served = None if len(found) > before else build.served()
        if len(found) == before:
            build.compile(served or {})
        elif read and served is None:
            build.compile(build.bare())
        build.inventory()
    return None if served is None or len(found) > before else build.packed(served)


class _Build:
    """One build, from snapshot to checked text; problems of all steps go to one list."""

    def __init__(
        self,
        taken: Snapshot,
        inputs: Mapping[str, Schema],
        documents: Mapping[str, Schema],
        opa: OpaCommand,
        scratch: Path,
        found: list[Problem],
        own: Document | None,
    ) -> None:
        self._taken = taken
        self._names = frozenset(inputs)
        self._inputs = {**inputs, COMMON: common(inputs)}
        self._own = own
        parameters = {} if own is None else {PARAMETERS: schema_of(own.value)}
        self._documents = documents.keys() | DERIVED.keys() | parameters.keys()
        self._policy = policy({**documents, **{name: {} for name in DERIVED}, **parameters})
        self._opa = opa
        self._scratch = scratch
        self._found = found
        self._parser = Parser(opa, scratch / "parse")
        self._recipe = taken.recipe(found)
        self._common = PointRules(COMMON)
        self._points = {name: PointRules(name, self._common) for name in sorted(inputs)}
        self._proofs: list[Proof] = []
        self._places: dict[str, RuleFile] = {}
        self._modules: dict[str, Module] = {}
        self._foreign: set[str] = set()
        self._signatures: Mapping[str, Signature] = {}
        self._readable = False

    def read(self) -> bool:
        """Read every file; false when one has no place or does not parse."""
        before = len(self._found)
        self._place()
        self._parse()
        whole = len(self._found) == before
        capabilities = self._opa.capabilities()
        self._signatures = signatures(capabilities)
        lint = Lint(self._signatures, self._modules.values())
        self._write("capabilities.json", json.dumps(allowed(capabilities)))
        for module in self._modules.values():
            self._module(module, lint)
        self._patterns()
        own = [one for one in self._modules.values() if one.name not in self._foreign]
        self._found.extend(self._parser.unformatted(own))
        added_files = [one for one in self._modules.values() if self._places[one.name].added]
        if whole:  # a rule that does not parse may read any
            self._found.extend(unreachable.parameter_problems(self._own, added_files))
        self._readable = whole and len(self._found) == before  # a requirement that cannot be read was not removed
        if whole:
            for point in self._points.values():
                self._found.extend(points.problems(point))
        return whole

    def bare(self) -> dict[str, str]:
        """What authors wrote, by served path and without comments."""
        return {self._places[name].served: module.bare_text() for name, module in self._modules.items()}

    def served(self) -> dict[str, str]:
        """Everything in the archive: what authors wrote, the findings of each file, points and router.

        Conditions are written out where the text, parsed again, shows that they stayed the author's.
        """
        bare = self.bare()
        texts = {**bare, _ROUTER: generate.router(self._points)}
        texts[f"admission/compiled/{COMMON}.rego"] = generate.shared_module(
            approvals=generate.APPROVALS in bare, waivers=generate.WAIVERS in bare
        )
        for point in self._points.values():
            texts[f"admission/compiled/{point.name}.rego"] = generate.point_module(
                point, waivers=generate.WAIVERS in bare
            )
        held = {
            self._places[one.module.name].served: (point, one.module)
            for point in (self._common, *self._points.values())
            for one in point.held
        }
        texts |= {served: generate.with_findings(bare[served], *rest) for served, rest in held.items()}
        parsed = self._parser.parse_again(texts, [])
        unlike = {served: generate.unlike(*rest, parsed.get(served)) for served, rest in held.items()}
        again = {
            served: generate.with_findings(bare[served], *held[served], names)
            for served, names in unlike.items()
            if names
        }
        texts |= again
        self._judge_served(texts, {served: one for served, one in parsed.items() if served not in again})
        return texts

    def _judge_served(self, texts: Mapping[str, str], parsed: Mapping[str, Module]) -> None:
        """Demand that every served file, read as OPA will read it, is in the package of its path."""
        names = self._authors()
        refused: list[Problem] = []
        left = {served: text for served, text in texts.items() if served not in parsed}
        for served, module in {**parsed, **self._parser.parse_again(left, refused)}.items():
            if module.package != _package(served):
                self._found.append(added.unmoved(names.get(served, served), _package(served)))
        for one in refused:
            where = Location(names.get(one.where.file, one.where.file), one.where.line)
            message = f"what would be served does not parse: {one.message}"
            self._found.append(Problem(where, message, one.remedy))

    def compile(self, texts: Mapping[str, str]) -> None:
        """Let OPA compile the whole, strictly and by the schemas; problems that repeat ours are left out."""
        judged = self._judged_by()
        for name, text in texts.items():
            self._write(f"served/{name}", annotated(text, judged[name]) if name in judged else text)
        self._write("served/.manifest", archives.manifest({}, archives.RULES_ROOT, {})[0].decode("utf-8"))
        scratch = self._scratch
        finished = self._opa.check(scratch / "served", scratch / "capabilities.json", scratch / "schemas")
        if finished.code == 0:
            return
        reported = {(one.where.file, one.where.line) for one in self._found}

        def line(file: str, row: int, message: str) -> int:
            return self._authored(file, row - len(HEAD), texts[file], message) if file in judged else row

        refused = opa_problems(finished, self._authors(), "rego", line)
        self._found.extend(one for one in dict.fromkeys(refused) if (one.where.file, one.where.line) not in reported)

    def packed(self, texts: Mapping[str, str]) -> tuple[bytes, bytes] | None:
        """The archive of these files, and the words beside it."""
        if self._recipe is None:
            return None
        entries = {point.name: point.entries() for point in self._points.values()}
        catalogue = Catalogue(points=entries, proofs=tuple(self._proofs)).written
        files = {name: text.encode("utf-8") for name, text in texts.items()}
        metadata = {"name": self._taken.recipe_name, **self._recipe.model_dump(), archives.WORDS: digest(catalogue)}
        return archives.archive(files, archives.RULES_ROOT, metadata), catalogue

    def _authors(self) -> dict[str, str]:
        """The author's name of each served file."""
        return {one.served: name for name, one in self._places.items()}

    def _judged_by(self) -> dict[str, str]:
        """The schema of the input that each file is judged by, by served path; writes all schemas."""
        uses: dict[str, frozenset[str]] = {}
        for name, module in self._modules.items():
            place_ = self._places[name]
            for reached in [place_] if place_.helpers else [place_, *self._helpers(module)]:
                uses[reached.served] = uses.get(reached.served, frozenset()) | ({place_.point} - {""})
        files = {use: f"inputs_{number}" for number, use in enumerate(sorted(set(uses.values()), key=sorted))}
        for use, file in files.items():
            chosen = {name: self._inputs[name] for name in sorted(use or self._names)}
            self._write(f"schemas/input/{file}.json", json.dumps(union(chosen)))
        self._write("schemas/policy.json", json.dumps(self._policy))
        return {served: files[use] for served, use in uses.items()}

    def _helpers(self, module: Module) -> set[RuleFile]:
        """The places of the shared helpers that a file reaches, also through others."""
        by_package = {place_.package: name for name, place_ in self._places.items() if place_.helpers}
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = {by_package[one] for one in waiting.pop().packages() if one in by_package} - found
            found |= new
            waiting += [self._modules[name] for name in new if name in self._modules]
        return {self._places[name] for name in found}

    def _authored(self, served: str, row: int, text: str, message: str) -> int:
        """The author's line for a line of a served file; a reference in what was generated is at its requirement."""
        if not message.startswith("undefined ref"):
            return row
        every = [one for point in self._points.values() for one in point.requirements()]
        lines = {one.code: one.line for one in every if self._places[one.file].served == served}
        about = message.partition(": ")[2]
        return archives.authored_line(text, row, lines, lambda line: bool(about) and about in line)

    def inventory(self) -> None:
        """Compare the requirements with the inventories, if all of them could be read."""
        if not self._readable:
            return
        every = {(one.point, one.code): one for point in self._points.values() for one in point.requirements()}
        for name, added_ones in (("rego", False), (f"bundles/{self._taken.recipe_name}", True)):
            file = f"{name}/inventory.yaml"
            held = [one for one in every.values() if one.added is added_ones]
            self._found.extend(inventory_problems(file, self._taken.rules.get(file), held))

    def _place(self) -> None:
        for name in sorted(self._taken.served):
            where = place(name, self._names)
            if isinstance(where, Problem):
                self._found.append(where)
            else:
                self._places[name] = where
        for name, data in sorted(self._taken.tests.items()):
            self._found.extend(test_place(name, data, self._names))

    def _parse(self) -> None:
        files = {name: data for name, data in self._taken.served.items() if name in self._places}
        self._foreign = {
            name for name, data in files.items() if self._places[name].kind is Kind.ADDED and added.foreign(data)
        }
        own = {name: data for name, data in files.items() if name not in self._foreign}
        self._modules = self._parser.parse(own, self._found)
        foreign = self._parser.parse_foreign({name: files[name] for name in sorted(self._foreign)}, self._found)
        for name, module in foreign.items():
            self._modules[name] = added.moved(module, self._places[name], self._found)

    def _module(self, module: Module, lint: Lint) -> None:
        where, foreign = self._places[module.name], module.name in self._foreign
        self._found.extend(module_problems(module, where, self._documents, foreign=foreign))
        point = self._common if where.point == COMMON else self._points.get(where.point)
        if foreign and point is not None:
            owner = "" if self._recipe is None else self._recipe.owner
            held = added.sets(module, where, owner, self._found)
            point.held += held
            self._reached(module, held)
            return
        facts = self._inputs.get(where.point, {})
        held, proofs = requirements.read(module, where, lint, facts, self._policy, self._found)
        self._proofs += proofs
        if where.kind is Kind.ADDED:
            self._reached(module, held)
        if point is not None:
            point.held += held
            if where.kind is Kind.LIMITS:
                point.limits = module.name

    def _patterns(self) -> None:
        """Refuse a regular expression that OPA cannot use: a call with it is undefined, and its rule never applies."""
        written = [(module, *one) for module in self._modules.values() for one in patterns(module)]
        self._write("patterns.json", json.dumps([text for _, _, text in written]))
        refused = {*self._opa.not_patterns(self._scratch / "patterns.json")} if written else set()
        remedy = "correct the pattern; RE2, which OPA uses, has no look-arounds and references"
        for module, line, text in written:
            if text in refused:
                self._found.append(module.problem(line, f"`{printable(text)}` is not a regular expression", remedy))

    def _reached(self, module: Module, held: list[requirements.Held]) -> None:
        """Refuse what could never apply in an added file; unreadable files were reported before."""
        where = self._places[module.name]
        if held:
            names = [one.requirement.rule for one in held]
            facts = self._inputs.get(where.point, {})
            found = unreachable.rule_problems(module, where, names, facts, self._policy, self._signatures, self._names)
            self._found.extend(found)

    def _write(self, name: str, text: str) -> None:
        path = self._scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def _package(served: str) -> tuple[str, ...]:
    """The package that a path in the archive claims."""
    return ("admission",) if served == _ROUTER else tuple(served.removesuffix(".rego").split("/"))


class _Inventory(RootModel[dict[str, list[str]]]):
    model_config = ConfigDict(strict=True)


def inventory_problems(name: str, data: bytes | None, held: Collection[Requirement]) -> Iterator[Problem]:
    """Differences between the inventory and the requirements; `data` is None if the file is missing.

    A deleted requirement leaves nothing that could fail, so each code is listed: `source: [code, …]`.
    """
    found: list[Problem] = []
    if data is None or is_blank(name, data):
        document: Document | None = Document(name, {}, {})
    else:
        document = explain.read(data, name, found)
    remedies = {"": "write `<point>:` and its codes below"}
    if document is None or explain.validated(_Inventory, document, found, remedies=remedies) is None:
        yield from found
        return
    if data is None and held:
        yield Problem(Location(name), "the inventory is missing", "list every code that must exist, by point")
    listed: dict[str, list[str]] = document.value
    yield from _order_problems(document, listed)
    rule = "rule" if name.startswith("bundles/") else "requirement"
    there = {(one.point, one.entry) for one in held}
    for point, entries in listed.items():
        for index, entry in enumerate(entries):
            if (point, entry) not in there:
                message = f"the code `{entry}` of `{point}` must exist, but no {rule} has it"
                remedy = f"restore the {rule}; to drop it on purpose, remove this line too"
                yield Problem(_listed_at(document, point, index), message, remedy)
    for one in held:
        if one.entry not in listed.get(one.point, ()):
            later = [entry for entry in listed.get(one.point, ()) if entry > one.entry]
            place = f"below `{one.point}:`{f', before `  - {min(later)}`,' if later else ''}"
            line = f"the line `  - {one.entry}` {place} in {name}"
            lines = f"the lines `{one.point}:` and `  - {one.entry}` to {name}"
            missing = [entry for entry in listed.get(one.point, ()) if (one.point, entry) not in there]
            likely = f"{close}correct the code, or " if (close := schemas.likely(one.entry, missing)) else ""
            remedy = f"{likely}add {line if one.point in listed else lines}"
            yield Problem(one.where, f"the code `{one.entry}` is not in {name}", remedy)


def _order_problems(document: Document, listed: dict[str, list[str]]) -> Iterator[Problem]:
    for point, entries in listed.items():
        if not entries:
            yield Problem(_listed_at(document, point), f"`{point}` lists no code", "remove the line")
        for index, (before, entry) in enumerate(pairwise(entries), 1):
            if before >= entry:
                message = f"`{entry}` is listed after `{before}`"
                yield Problem(_listed_at(document, point, index), message, "sort the codes by name and list each once")


def _listed_at(document: Document, *path: str | int) -> Location:
    return Location(document.name, document.where(path).line)
