"""What detectors see in a proposed contract: facts only, in a form, at a place, within bounds."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.facts.tools.proposals import CHARACTERS, DEPTH, HITS, VALUES, ProposalFacts, proposal_facts
from tests.facts.contract_texts import HARMLESS, HOSTILE

pytestmark = pytest.mark.threat("injection")


def seen(facts: ProposalFacts) -> set[tuple[str, str, str]]:
    return {(what, hit.form, hit.id) for what, hits in facts.hits.items() for hit in hits}


def delivered(contract: dict[str, Any]) -> set[tuple[str, str]]:
    return {(what, form) for what, form, _ in seen(proposal_facts(contract)) if form != "inline"}


# covers: H15
@pytest.mark.parametrize("text", HARMLESS)
def test_prose_contains_no_executable_content(text: str) -> None:
    assert delivered({"description": text}) == set()
    assert delivered({"notes": [{"more": [text, 1]}]}) == set()


def test_enough_harmless_and_hostile_examples_exist() -> None:
    assert len(HARMLESS) >= 50
    assert len(HOSTILE) >= 70


# covers: A70.1 A71.1 A72.1 A73.1 A74.1 H15
@pytest.mark.parametrize(("text", "what", "form"), HOSTILE)
def test_executable_content_is_detected(text: str, what: str, form: str) -> None:
    assert (what, form) in delivered({"description": text})
    assert (what, form) in delivered({"notes": [{"more": [text, 1]}]})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Nobody has to type `pip install requests` for this", "package_name"),
        ("it never runs `rm -rf /tmp`, not even once", "shell_command"),
        ("It does what `os.remove(path)` would do, without it", "python_code"),
        ("There is no ALTER TABLE contacts ADD COLUMN in it", "migration"),
        ("We do not use (x) => { y } here", "executable_handler"),
    ],
)
def test_an_inline_mention_is_reported_as_inline(text: str, what: str) -> None:
    assert seen(proposal_facts({"description": text})) == {(what, "inline", "contract/description:1")}


@pytest.mark.parametrize(
    ("contract", "what", "place"),
    [
        ({"pythonCode": "x"}, "python_code", "contract/pythonCode"),
        ({"code": "print(1)"}, "python_code", "contract/code"),
        ({"script": "tools/search.py"}, "python_code", "contract/script"),
        ({"command": ["ls"]}, "shell_command", "contract/command"),
        ({"x": {"Shell-Command": "ls"}}, "shell_command", "contract/x/#0"),
        ({"requirements": ["requests", "a contacts database"]}, "package_name", "contract/requirements"),
        ({"requirements": "requests==1"}, "package_name", "contract/requirements"),
        ({"requirements": ["requests >= 2, < 3"]}, "package_name", "contract/requirements"),
        ({"modules": ["pandas"]}, "package_name", "contract/modules"),
        ({"run": "ls"}, "shell_command", "contract/run"),
        ({"exec": "ls"}, "shell_command", "contract/exec"),
        ({"script": "x"}, "python_code", "contract/script"),
        ({"dependencies": {"left-pad": "^1.3"}}, "package_name", "contract/dependencies"),
        ({"dependency": "numpy"}, "package_name", "contract/dependency"),
        ({"install": ["requests"]}, "package_name", "contract/install"),
        ({"handler": {"any": "thing"}}, "executable_handler", "contract/handler"),
        ({"implementation": "contacts.tools:search"}, "executable_handler", "contract/implementation"),
        ({"x": {"properties": {"handler": "x"}}}, "executable_handler", "contract/x/properties/handler"),
        ({"\uff48\uff41\uff4e\uff44\uff4c\uff45\uff52": "x"}, "executable_handler", "contract/#0"),
        ({"migrations": ["0001"]}, "migration", "contract/migrations"),
        ({"code": "return rows"}, "python_code", "contract/code"),
        ({"source": "del rows[0]"}, "python_code", "contract/source"),
        ({"installCommand": "x"}, "shell_command", "contract/installCommand"),
        ({"python_packages": ["x"]}, "package_name", "contract/python_packages"),
        ({"handlerPath": "x"}, "executable_handler", "contract/handlerPath"),
        ({"schema_migration": "x"}, "migration", "contract/schema_migration"),
    ],
)  # fmt: skip
def test_a_field_is_flagged_by_its_name_or_value(contract: dict[str, Any], what: str, place: str) -> None:
    assert (what, "field", place) in seen(proposal_facts(contract))


@pytest.mark.parametrize(
    "contract",
    [
        {"input_schema": {"properties": {"code": {"type": "string"}, "command": {"type": "string"}, "handler": True}}},
        {"errors": [{"code": "not_found"}, {"code": "E42"}, {"code": 404}]},
        {"requirements": "A contacts database with at least one entry", "dependencies": "none", "handler": None},
        {"run": {"seconds": 5}, "script": {"language": "Latin"}},
        {"run": "Once for each contact", "script": "Written by a curator", "modules": "none", "exec": False},
        {"requirements": "At least 1 contact, and amount >= 2", "modules": "Contacts and their groups"},
        {"commands": [], "packages": "None", "migrations": {}, "callback": False},
        {"source": "the contacts database", "implementation": "Written by a curator", "function": "Finds contacts"},
        {"side_effects": ["read"], "environment": "workspace", "code": ""},
        {"code": "pass", "body": "contacts", "source": "contacts, groups", "implementation": "import of contacts"},
    ],
)
def test_a_field_that_names_data_delivers_nothing(contract: dict[str, Any]) -> None:
    assert delivered(contract) == set()


def test_json_in_text_and_lists_of_lines_are_looked_through() -> None:
    assert ("shell_command", "field") in delivered({"notes": '{"a": [{"command": "ls"}]}'})
    assert ("shell_command", "field") in delivered({"notes": '{"command": "ls", "command": null}'})
    assert ("python_code", "line") in delivered({"steps": ["def run():", "    return 1"]})
    assert ("python_code", "line") in delivered({"import os; os.remove(1)": 1})
    assert ("migration", "line") in delivered({"properties": {"DROP TABLE contacts;": {"type": "string"}}})


def test_a_place_never_holds_content() -> None:
    contract = {"ghp_0123456789": {"rm -rf /tmp/x": ["rm -rf /tmp/x"]}}
    places = {place for *_, place in seen(proposal_facts(contract))}
    assert places == {"contract/#0/#0:1"}


def test_reported_hits_are_capped() -> None:
    facts = proposal_facts({"description": "rm -rf /tmp/x\n" * 100})
    assert len(facts.hits["shell_command"]) == HITS
    assert facts.complete


def nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "contract",
    [
        {"description": "x" * (CHARACTERS + 1)},
        {"notes": [{"x": "y" * 100}] * 1_000},
        {"notes": list(range(6_000))},
        {"notes": "[" * 40 + "1" + "]" * 40},
        {"notes": [[] for _ in range(VALUES)]},
        {"notes": {f"{number}" + "x" * 100: 1 for number in range(CHARACTERS // 100)}},
        {"notes": nested([], DEPTH), "more": "x"},
        {"notes": nested('{"package_name": "x"}', DEPTH - 1), "more": "x"},
    ],
)
def test_an_oversized_contract_is_reported_as_incomplete(contract: dict[str, Any]) -> None:
    assert not proposal_facts(contract).complete


@pytest.mark.parametrize("text", ["{x}\nrm -rf /tmp/x", "rm -rf /tmp/x", "[rm]\nrm -rf /tmp/x"])
def test_a_contract_of_the_most_levels_is_read(text: str) -> None:
    facts = proposal_facts({"notes": nested(text, DEPTH - 1)})
    assert (facts.complete, bool(facts.hits["shell_command"])) == (True, True)
    assert ("package_name", "field") in delivered({"notes": nested('{"package_name": "x"}', DEPTH - 3)})


SLOW = {
    "headers": "if x:\n" * 9_000,
    "nested": "\n".join(" " * (line % 120) + "if x:" for line in range(900)),
    "parentheses": "(" * 60_000,
    "decorators": "@a\n" * 20_000,
    "calls": "f(\n" * 20_000,
    "definitions": "def f(" + ")->" * 19_000,
    "statements": "create table " * 4_900,
    "values": "insert into a " + "(" * 60_000,
    "ticks": "`a" * 30_000,
    "arrows": "(a" * 30_000,
    "word": "a" * 65_000,
    "spaces": "a" + " " * 60_000,
    "options": "apt " + "-a " * 20_000,
    "at": "a@" * 30_000,
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", SLOW)
def test_hostile_text_is_scanned_in_bounded_time(name: str) -> None:
    """Half a second here; a minute or more where a pattern needs the square of the length."""
    started = time.process_time()
    assert proposal_facts({"description": SLOW[name]}).complete == (name not in {"decorators", "nested"})
    assert time.process_time() - started < 10


@pytest.mark.parametrize("line", ["@a({0})\n", "{1}if a({0}):\n"])
def test_blocks_within_blocks_are_read_within_bounds(line: str) -> None:
    """Each line opens a block of all that follow."""
    lines = [line.format("1, " * 50, " " * (number % 90)) for number in range(300)]
    started = time.process_time()
    assert not proposal_facts({"description": "".join(lines)}).complete
    assert time.process_time() - started < 3
    assert proposal_facts({"description": "".join(lines[:10])}).complete
