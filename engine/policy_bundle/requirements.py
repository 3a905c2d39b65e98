"""Files of requirements, helpers and limits: what each rule may be, and the requirements in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.errors import Location, Problem
from engine.model import is_reserved
from engine.policy_bundle import notes, schemas
from engine.policy_bundle.bodies import Lint
from engine.policy_bundle.catalogue import Proof, Requirement
from engine.policy_bundle.checks import Kind, RuleFile
from engine.policy_bundle.schemas import Schema
from engine.policy_bundle.syntax import Module, Rule, constant

LIMITS_RULE = "limits"
_LIMITS = "write `limits := {…}` with every field of the point's limits"


@dataclass(frozen=True, slots=True)
class Held:
    """A requirement with the definitions of its rule, as the generator needs them."""

    requirement: Requirement
    definitions: tuple[Rule, ...]
    module: Module

    @property
    def collects(self) -> bool:
        """Whether it is a `deny` or `violation` set that must stay empty, not a condition."""
        return self.definitions[0].key is not None


def read(
    module: Module, place: RuleFile, lint: Lint, facts: Schema, values: Schema, found: list[Problem]
) -> tuple[list[Held], list[Proof]]:
    """The requirements of one file and the proofs of its helpers; problems are added to `found`.

    `facts` is the schema of the file's input, `values` that of `data.policy`.
    """
    for note in module.package_notes:
        notes.read(note, notes.PackageNote, module.name, found)
    held: list[Held] = []
    proofs: list[Proof] = []
    for name, definitions in module.definitions().items():
        found.extend(_one_arity(module, definitions))
        if place.kind in {Kind.REQUIREMENTS, Kind.ADDED} and not name.startswith("_"):
            found.extend(_shape(module, definitions))
            one = _requirement(module, place, definitions, facts, values, found)
            proven = one is None or one.requirement.proof is not None
            if one is not None:
                held.append(one)
        else:
            if place.kind is Kind.LIMITS:
                found.extend(_limits_shape(module, definitions))
            proof = _proof_of_helper(module, definitions, found)
            proven = proof is not None
            if proof is not None:
                line = definitions[0].line
                proofs.append(Proof(point=place.point, rule=name, proof=proof, file=module.name, line=line))
        if not proven:
            found.extend(risk for rule in definitions for risk in lint.risks(module, rule))
    if place.kind is Kind.LIMITS and LIMITS_RULE not in module.definitions():
        found.append(module.problem(1, "the file defines no `limits`", _LIMITS))
    return held, proofs


def _requirement(
    module: Module, place: RuleFile, definitions: list[Rule], facts: Schema, values: Schema, found: list[Problem]
) -> Held | None:
    rule = definitions[0]
    written = [note for definition in definitions for note in definition.notes]
    if not rule.notes:
        message = f"`{rule.name}` has no METADATA, so its finding would have no text"
        remedy = "write `# METADATA` above it with title, description, custom.code and custom.remedy; "
        found.append(module.problem(rule.line, message, f"{remedy}or begin a helper's name with `_`"))
        return None
    if len(written) > 1:
        message = f"`{rule.name}` has METADATA twice"
        found.append(module.problem(written[1].line - 1, message, "keep one block, above its first definition"))
        return None
    note = notes.read(written[0], notes.RequirementNote, module.name, found)
    if note is None:
        return None
    requirement = described(note, place, rule)
    found.extend(words_problems(requirement, rule))
    found.extend(_known(requirement, facts, values))
    return Held(requirement, tuple(definitions), module)


def described(
    note: notes.RequirementNote | notes.SetNote, place: RuleFile, rule: Rule, **otherwise: Any
) -> Requirement:
    """The requirement of a rule: its METADATA, completed by `otherwise`."""
    words = note.model_dump(exclude={"custom", "labels"}, exclude_none=True)
    words |= note.custom.model_dump(exclude_none=True)
    return Requirement(
        **{**otherwise, **words},
        point=place.point,
        topic=place.topic,
        rule=rule.name,
        labels=note.labels.model_dump(exclude_none=True),
        file=place.name,
        line=rule.line,
        added=place.kind is Kind.ADDED,
    )


def words_problems(requirement: Requirement, rule: Rule) -> Iterator[Problem]:
    """Where METADATA and rule do not fit each other."""
    where = requirement.where
    if is_reserved(requirement.code):
        yield Problem(where, f"the code `{requirement.code}` is reserved for the engine itself", "choose another code")
    if len(rule.arguments) != requirement.arity:
        message, remedy = _arity_problem(requirement)
        yield Problem(where, f"`{rule.name}` takes {_count(rule)}, but {message}", remedy)
    if requirement.fixed and requirement.standing != "deny":
        yield Problem(where, "`fixed` and `standing` contradict each other", "keep one of them")
    if requirement.empty is not None and requirement.each is None:
        message = f"`empty: {requirement.empty}` needs a list, but METADATA names none"
        yield Problem(where, message, "add `each`, or remove it")


def _arity_problem(requirement: Requirement) -> tuple[str, str]:
    each = requirement.each
    if each is None:
        remedy = "add `each: <list>` to custom, such as `each: bundle.records`, or take no argument"
        return "METADATA names no list", remedy
    if requirement.empty == "required":
        return f"covers the whole list `{each}`", f"take no argument, and write `input.{each} == []`"
    return f"is evaluated for each item of `{each}`", "take exactly one argument, the item"


def _known(requirement: Requirement, facts: Schema, values: Schema) -> Iterator[Problem]:
    """Lists, facts and rows of values that METADATA names and that cannot be there."""
    item, where = facts, requirement.where
    if requirement.each is not None:
        path = requirement.each.split(".")
        listed = schemas.at(facts, path)
        if listed is None or not schemas.is_list(listed, facts):
            message = f"`each` names `{requirement.each}`, which is not a list in the input of `{requirement.point}`"
            yield Problem(where, message, schemas.mistaken(facts, path, "facts")[1])
            return
        item = {**facts, **(schemas.at(facts, [*path, None]) or {})} if facts else {}
    for row in requirement.reads:
        yield from _known_row(row, where, item, facts, values)
    for fact in requirement.facts.values():
        yield from _known_fact("facts", fact, where, item, facts)
    if requirement.field is not None:
        yield from _known_fact("field", requirement.field, where, item, facts)


def _known_row(row: str, where: Location, item: Schema, facts: Schema, values: Schema) -> Iterator[Problem]:
    parts = notes.parts(row)
    path = [None if part.startswith("{") else part for part in parts]
    if schemas.at(values, path) is None:
        wrong, remedy = schemas.mistaken(values, path, "values")
        yield Problem(where, f"`reads` names `{row}`, but there are no values `{wrong}`", remedy)
    for part in parts:
        inner = part.removeprefix("{").removesuffix("}")
        if not part.startswith("{"):
            continue
        if "{" in inner:
            yield from _known_row(inner, where, item, facts, values)
        else:
            yield from _known_fact("reads", inner, where, item, facts)


def _known_fact(word: str, fact: str, where: Location, item: Schema, facts: Schema) -> Iterator[Problem]:
    path = fact.split(".")
    if all(schemas.at(one, path) is None for one in (item, facts)):
        message = f"`{word}` names the fact `{fact}`, which does not exist"
        yield Problem(where, message, schemas.mistaken(item, path, "facts")[1])


def _shape(module: Module, definitions: list[Rule]) -> Iterator[Problem]:
    """A requirement is true or undefined, and nothing else."""
    for rule in definitions:
        if (problem := _shape_problem(rule)) is not None:
            yield module.problem(rule.line, *problem)
        for argument in rule.arguments:
            if argument.get("type") != "var" or str(argument["value"]).startswith("$"):
                message = f"an argument of `{rule.name}` is not a variable"
                yield module.problem(rule.line, message, "name the item, such as `record`")


def _shape_problem(rule: Rule) -> tuple[str, str] | None:
    name = rule.name
    if rule.default:
        message = f"`default {name}` would answer for facts that are missing"
        return message, "remove the default: undefined is not proven"
    if rule.key is not None or not rule.plain_name:
        fix = f"write `{name} if …`, or `{name}(item) if …` with `each`"
        if name.startswith(("deny", "violation")):  # `deny if …` would state the opposite
            fix = "state what must hold under another name; or keep the set, in a package such as `main`"
        return f"`{name}` is a set or object, not a condition", fix
    if rule.otherwise is not None:
        return f"`{name}` has an `else`", "write several definitions; the rule holds when one does"
    if rule.value is not None and constant(rule.value) is not True:
        fix = f"write `{name} if …` and put conditions into the body"
        return f"`{name}` has a value other than true", fix
    if rule.unconditional:
        return f"`{name}` has no condition and so always holds", "write what must hold, or remove it"
    return None


def _limits_shape(module: Module, definitions: list[Rule]) -> Iterator[Problem]:
    rule = definitions[0]
    if rule.name != LIMITS_RULE:
        if not rule.name.startswith("_"):
            yield module.problem(rule.line, f"`{rule.name}` is not `limits`", "begin a helper's name with `_`")
    elif rule.arguments or rule.key is not None or not rule.plain_name:
        yield module.problem(rule.line, "`limits` is not one object", _LIMITS)


def _one_arity(module: Module, definitions: list[Rule]) -> Iterator[Problem]:
    for rule in definitions[1:]:
        if len(rule.arguments) != len(definitions[0].arguments):
            message = f"`{rule.name}` takes {_count(definitions[0])} in one place and {_count(rule)} in another"
            yield module.problem(rule.line, message, "use two names")


def _proof_of_helper(module: Module, definitions: list[Rule], found: list[Problem]) -> str | None:
    """The proof of a helper, if it has one."""
    written = [note for definition in definitions for note in definition.notes]
    read = [notes.read(note, notes.HelperNote, module.name, found) for note in written]
    return next((note.custom.proof for note in read if note is not None and note.custom.proof is not None), None)


def _count(rule: Rule) -> str:
    return {0: "no argument", 1: "one argument"}.get(len(rule.arguments), f"{len(rule.arguments)} arguments")
