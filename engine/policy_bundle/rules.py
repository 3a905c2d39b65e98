"""Rule sources to what is served: read, refused or accepted, generated, checked as a whole."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.canonical import canonical
from engine.errors import Location, Problem
from engine.opa.command import OpaCommand
from engine.policy_bundle import added, builtins, generate, inventory, points, requirements
from engine.policy_bundle.archives import GENERATED, manifest
from engine.policy_bundle.bodies import Lint
from engine.policy_bundle.catalogue import Catalogue, Proof
from engine.policy_bundle.checks import COMMON, Kind, Place, module_problems, place, test_place
from engine.policy_bundle.parsing import Parser, opa_problems
from engine.policy_bundle.points import PointRules
from engine.policy_bundle.schemas import HEAD, Schema, annotated, common, policy, union
from engine.policy_bundle.sources import Snapshot, recipe
from engine.policy_bundle.syntax import Module
from engine.values import DERIVED

_ROUTER = "admission/main.rego"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is served by path below `admission/`, the words beside it, and who answers for it."""

    files: dict[str, bytes]
    catalogue: Catalogue
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """What rules may read: the schema of the input of each point, and of each document of values."""

    inputs: Mapping[str, Schema]
    documents: Mapping[str, Schema]


def compile_rules(taken: Snapshot, known: Known, opa: OpaCommand, found: list[Problem]) -> Rules | None:
    """Check all rules and generate what is served; None with every reason in `found` otherwise."""
    before = len(found)
    with tempfile.TemporaryDirectory(prefix="admission-policy-") as scratch:
        build = _Build(taken, known, opa, Path(scratch), found)
        read = build.read()
        if len(found) > before:
            if read:
                build.compile(build.bare())
            return None
        served = build.served()
        if build.verify(served):
            build.compile(served)
    if len(found) > before:
        return None
    entries = {point.name: point.entries() for point in build.points.values()}
    catalogue = Catalogue(points=entries, proofs=tuple(build.proofs))
    return Rules({name: text.encode("utf-8") for name, text in served.items()}, catalogue, build.metadata)


class _Build:
    """One build, from snapshot to checked text; problems of all steps go to one list."""

    def __init__(
        self,
        taken: Snapshot,
        known: Known,
        opa: OpaCommand,
        scratch: Path,
        found: list[Problem],
    ) -> None:
        self._common = PointRules(COMMON)
        self.points = {name: PointRules(name, self._common) for name in sorted(known.inputs)}
        self.metadata: dict[str, str] = {}
        self.proofs: list[Proof] = []
        self._taken = taken
        self._inputs = {**known.inputs, COMMON: common(known.inputs)}
        self._policy = policy({**known.documents, **{name: {} for name in DERIVED}})
        self._names = frozenset(known.inputs)
        self._documents = frozenset(known.documents)
        self._opa = opa
        self._scratch = scratch
        self._found = found
        self._parser = Parser(opa, scratch / "parse")
        self._places: dict[str, Place] = {}
        self._modules: dict[str, Module] = {}
        self._foreign: set[str] = set()

    def read(self) -> bool:
        """Read every file; false when one has no place or does not parse."""
        chosen = recipe(self._taken, self._found)
        if chosen is not None:
            self.metadata = {"name": self._taken.recipe_name, "description": chosen.description, "owner": chosen.owner}
        before = len(self._found)
        self._place()
        self._parse()
        whole = len(self._found) == before
        capabilities = self._opa.capabilities()
        lint = Lint(builtins.signatures(capabilities), self._modules.values())
        self._write("capabilities.json", json.dumps(builtins.allowed(capabilities)))
        for name, module in self._modules.items():
            self._module(module, self._places[name], lint, "" if chosen is None else chosen.owner)
        self._found.extend(
            self._parser.unformatted(one for one in self._modules.values() if one.name not in self._foreign)
        )
        if whole:
            if len(self._found) == before:  # a requirement that cannot be read is not gone
                self._inventory()
            for point in self.points.values():
                self._found.extend(points.problems(point))
        return whole

    def bare(self) -> dict[str, str]:
        """What authors wrote, by served path and without comments."""
        return {self._places[name].served: module.bare_text() for name, module in self._modules.items()}

    def served(self) -> dict[str, str]:
        """Everything in the archive: what authors wrote, the findings of each file, points and router."""
        texts = self.bare()
        texts[f"admission/compiled/{COMMON}.rego"] = generate.shared_module(approvals=generate.APPROVALS in texts)
        texts |= self._with_findings(self._common, texts)
        for point in self.points.values():
            texts[f"admission/compiled/{point.name}.rego"] = generate.point_module(point)
            texts |= self._with_findings(point, texts)
        texts[_ROUTER] = generate.router(self.points)
        return texts

    def verify(self, texts: Mapping[str, str]) -> bool:
        """Whether every served file, read as OPA will read it, is in the package of its path."""
        names = {one.served: name for name, one in self._places.items()}
        refused: list[Problem] = []
        encoded = {served: text.encode("utf-8") for served, text in texts.items()}
        parsed = Parser(self._opa, self._scratch / "final").parse(encoded, refused)
        for one in refused:
            where = Location(names.get(one.where.file, one.where.file), one.where.line)
            refusal = Problem(where, f"what would be served does not parse: {one.message}", one.remedy)
            self._found.append(refusal)
        wrong = [served for served in texts if served in parsed and parsed[served].package != _package(served)]
        self._found.extend(added.unmoved(names.get(served, served), _package(served)) for served in wrong)
        return not wrong and parsed.keys() == texts.keys()

    def compile(self, texts: Mapping[str, str]) -> None:
        """Let OPA compile the whole, strictly and by the schemas; problems that repeat ours are left out."""
        judged = self._judged_by()
        for name, text in texts.items():
            self._write(f"served/{name}", annotated(text, judged[name]) if name in judged else text)
        self._write("served/.manifest", manifest({}, "admission", {})[0].decode("utf-8"))
        scratch = self._scratch
        finished = self._opa.check(scratch / "served", scratch / "capabilities.json", scratch / "schemas")
        if finished.code == 0:
            return
        names = {one.served: name for name, one in self._places.items()}
        told = {(one.where.file, one.where.line) for one in self._found}

        def line(file: str, row: int, message: str) -> int:
            return self._authored(file, row - len(HEAD), texts[file], message) if file in judged else row

        refused = opa_problems(finished, names, "rego", line)
        self._found.extend(one for one in dict.fromkeys(refused) if (one.where.file, one.where.line) not in told)

    def _judged_by(self) -> dict[str, str]:
        """The schema of the input that each file is judged by, by served path; writes all schemas."""
        modules = [(self._places[name], module) for name, module in self._modules.items()]
        uses: dict[str, frozenset[str]] = {}
        for place_, module in modules:
            for reached in [place_, *self._helpers(module)] if place_.kind is not Kind.LIB else [place_]:
                uses[reached.served] = uses.get(reached.served, frozenset()) | ({place_.point} - {""})
        files = {use: f"inputs_{number}" for number, use in enumerate(sorted(set(uses.values()), key=sorted))}
        for use, file in files.items():
            chosen = {name: self._inputs[name] for name in sorted(use or self._names)}
            self._write(f"schemas/input/{file}.json", json.dumps(union(chosen)))
        self._write("schemas/policy.json", json.dumps(self._policy))
        return {served: files[use] for served, use in uses.items()}

    def _helpers(self, module: Module) -> set[Place]:
        """The places of the shared helpers that a file reaches, also through others."""
        by_package = {place_.package: name for name, place_ in self._places.items() if place_.kind is Kind.LIB}
        found: set[str] = set()
        waiting = [module]
        while waiting:
            new = {by_package[one] for one in waiting.pop().packages() if one in by_package} - found
            found |= new
            waiting += [self._modules[name] for name in new if name in self._modules]
        return {self._places[name] for name in found}

    def _authored(self, served: str, row: int, text: str, message: str) -> int:
        """The author's line for a line of a served file; a reference in what was generated is at its requirement."""
        lines = text.splitlines()
        own = len(text.partition(GENERATED)[0].splitlines())
        if GENERATED not in text or row <= own or not message.startswith("undefined ref"):
            return row
        head = next((one for one in reversed(lines[:row]) if one.startswith("_findings contains ")), "")
        every = [one for point in self.points.values() for one in point.requirements()]
        first = next(
            (one.line for one in every if served == self._places[one.file].served and f'("{one.code}",' in head), 1
        )
        about = message.partition(": ")[2]
        return next((number for number in range(first, own + 1) if about and about in lines[number - 1]), first)

    def _inventory(self) -> None:
        every = {(one.point, one.code): one for point in self.points.values() for one in point.requirements()}
        for name, added_ones in (("rego", False), (f"bundles/{self._taken.recipe_name}", True)):
            file = f"{name}/inventory.yaml"
            held = [one for one in every.values() if one.added is added_ones]
            self._found.extend(inventory.problems(file, self._taken.inventories.get(file), held))

    def _place(self) -> None:
        for name in sorted({**self._taken.rules, **self._taken.added}):
            where = place(name, self._names)
            if isinstance(where, Problem):
                self._found.append(where)
            else:
                self._places[name] = where
        for name, data in sorted(self._taken.tests.items()):
            self._found.extend(test_place(name, data, self._names))

    def _parse(self) -> None:
        files = {
            name: data for name, data in {**self._taken.rules, **self._taken.added}.items() if name in self._places
        }
        self._foreign = {name for name in files if name in self._taken.added and added.foreign(files[name])}
        own = {name: data for name, data in files.items() if name not in self._foreign}
        self._modules = self._parser.parse(own, self._found)
        foreign = self._parser.parse_foreign({name: files[name] for name in sorted(self._foreign)}, self._found)
        for name, module in foreign.items():
            self._modules[name] = added.moved(module, self._places[name], self._found)

    def _module(self, module: Module, where: Place, lint: Lint, owner: str) -> None:
        foreign = module.name in self._foreign
        self._found.extend(module_problems(module, where, self._documents | DERIVED, foreign=foreign))
        point = self._common if where.point == COMMON else self.points.get(where.point)
        if foreign and point is not None:
            point.sets += added.sets(module, where, owner, self._found)
            return
        facts = self._inputs.get(where.point, {})
        held, proofs = requirements.read(module, where, lint, facts, self._policy, self._found)
        self.proofs += proofs
        if point is not None:
            point.held += held
            if where.kind is Kind.LIMITS:
                point.limits = module.name

    def _with_findings(self, point: PointRules, texts: Mapping[str, str]) -> dict[str, str]:
        """The files of a point with their findings, each parsed again to see that nothing was changed."""
        modules = self._modules_of(point)
        composed = {name: _composed(texts, self._places[name], point, module, ()) for name, module in modules.items()}
        encoded = {name: text.encode("utf-8") for name, text in composed.items()}
        again = Parser(self._opa, self._scratch / "again").parse(encoded, [])
        served = {}
        for name, module in modules.items():
            parsed = again.get(name)
            if parsed is not None:
                plain = generate.unlike(point, module, parsed)
            elif self._places[name].kind is Kind.ADDED:
                plain = set()  # left as it is, so that `verify` refuses it
            else:
                plain = {rule.name for rule in module.rules}
            text = _composed(texts, self._places[name], point, module, plain) if plain else composed[name]
            served[self._places[name].served] = text
        return served

    def _modules_of(self, point: PointRules) -> dict[str, Module]:
        names = {one.requirement.file for one in point.held} | {one.requirement.file for one in point.sets}
        return {name: self._modules[name] for name in sorted(names)}

    def _write(self, name: str, text: str) -> None:
        path = self._scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def _package(served: str) -> tuple[str, ...]:
    """The package that a path in the archive claims."""
    return ("admission",) if served == _ROUTER else tuple(served.removesuffix(".rego").split("/"))


def _composed(texts: Mapping[str, str], where: Place, point: PointRules, module: Module, plain: Iterable[str]) -> str:
    return f"{texts[where.served].rstrip()}\n\n{generate.findings(point, module, frozenset(plain))}"


def words(catalogue: Catalogue) -> bytes:
    """The catalogue as canonical JSON."""
    return canonical(catalogue.model_dump(mode="json"))
