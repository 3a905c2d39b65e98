"""policy/tools.yaml: mistakes are told at their field, and the lookup made of it is small and complete."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from engine.values import derived
from engine.values.hosts import host_form
from engine.values.tool_lookup import ruled_arguments, tool_lookup
from engine.values.tools import Tools
from tests.values import shipped

SHIPPED = shipped.SHIPPED["tools"]
changed, errors = partial(shipped.changed, "tools"), partial(shipped.errors, "tools")


def rule(**fields: Any) -> list[dict[str, Any]]:
    return [{"id": "one", "tools": ["http_get"], **fields}]


def looked_up(*changes: tuple[str, Any]) -> dict[str, Any]:
    values = Tools.model_validate(changed(*changes)).model_dump(mode="json", exclude_none=True)
    return tool_lookup(values)


# covers: B12.3
@pytest.mark.parametrize(
    ("path", "value", "where", "message"),
    [
        ("groups/contacts", ["group:contact"], "groups.contacts.0", "no group `contact`: use one of "),
        ("groups/contacts", ["contact_list"], "groups.contacts.0", "no tool `contact_list`: use one of `files_read`, "),
        ("profiles/reading", ["group:everything"], "profiles.reading.0", "no group `everything`: use one of "),
        ("rulesets/workspace/deny", rule(tools=["group:x"]), "rulesets.workspace.deny.0.tools.0", "no group `x`: "),
        ("rulesets/workspace/allow", rule(tools=["http"]), "rulesets.workspace.allow.0.tools.0", "no tool `http`: "),
        ("policies/assistant/rulesets", ["work"], "policies.assistant.rulesets.0", "no ruleset `work`: use one of "),
    ],
)
def test_unknown_names_are_reported_with_the_known_ones(path: str, value: Any, where: str, message: str) -> None:
    [(place, told)] = errors((path, value))
    assert place == where
    assert told.startswith(message)


# covers: B12.4
def test_group_cycles_are_reported() -> None:
    found = errors(("groups/contacts", ["group:subagents"]), ("groups/watching_subagents", ["group:contacts"]))
    assert [place for place, _ in found] == [
        "groups.contacts.0",
        "groups.watching_subagents.0",
        "groups.subagents.2",
    ]
    assert errors(("groups/contacts", ["shell", "group:contacts"]))[0] == (
        "groups.contacts.1",
        "group `contacts` contains itself through `group:contacts`: remove it from one of them",
    )


@pytest.mark.parametrize("section", ["deny", "confirm", "allow"])
def test_ids_of_one_ruleset_differ(section: str) -> None:
    other = ("rulesets/workspace/confirm", rule(id="two"))
    same = [*rule(), *rule()] if section != "confirm" else [*rule(id="two"), *rule(id="two")]
    [(place, told)] = errors(other, (f"rulesets/workspace/{section}", same))
    assert (place, told) == (
        f"rulesets.workspace.{section}.1.id",
        f"`{same[1]['id']}` is already the id of another rule in this ruleset",
    )


@pytest.mark.parametrize("name", ["only_changes", "only_contents"])
@pytest.mark.parametrize(("section", "conditions"), [("allow", {"paths": "any"}), ("deny", {}), ("confirm", {})])
def test_only_rules_that_refuse_paths_are_about_changes(section: str, conditions: dict[str, Any], name: str) -> None:
    [(place, told)] = errors((f"rulesets/workspace/{section}", rule(**{name: True}, **conditions)))
    assert place == f"rulesets.workspace.{section}.0.{name}"
    assert told.startswith(f"use `{name}` in deny and confirm rules with `paths` only")


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        ({"only_changes": True}, ["", "unread "]),
        ({"only_contents": True}, ["", "kept "]),
        ({"only_changes": True, "only_contents": True}, [""]),
    ],
    ids=["changes", "contents", "both"],
)
def test_a_rule_about_changes_or_contents_leaves_out_commands_without_any(
    only: dict[str, Any], kinds: list[str]
) -> None:
    lookup = looked_up(("rulesets/workspace/confirm", rule(paths=["/a"], **only)))
    confirm = lookup["policies"]["assistant"]["confirm"]["selectors"]["http_get"]
    assert confirm == dict.fromkeys((f"{kind}/a" for kind in kinds), 0)


@pytest.mark.parametrize("section", ["deny", "confirm"])
def test_a_refusing_rule_needs_one_condition_or_all_or_none(section: str) -> None:
    [(place, told)] = errors((f"rulesets/workspace/{section}", rule(paths="any", hosts="any")))
    assert place == f"rulesets.workspace.{section}.0"
    assert "use one of `hosts`, `paths` and `commands`, all three, or none" in told
    for conditions in ({}, {"paths": "any"}, {"paths": "any", "hosts": "any", "commands": "any"}):
        Tools.model_validate(changed((f"rulesets/workspace/{section}", rule(**conditions))))
    Tools.model_validate(changed(("rulesets/workspace/allow", rule(paths="any", hosts="any"))))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        *[
            ("hosts", host)
            for host in (
                "https://docs.example.com/",
                "https://Docs.example.com",
                "https://docs.example.com:443",
                "https://docs.example.com.",
                "https://user@docs.example.com",
                "https://a.*.example.com",
                "*example.com",
                "*",
                "*.*",
                "*.10.0.0.1",
                "10.0.0.1/8",
                "10.0.0.0/33",
                "010.0.0.1",
                "https://10.1",
                "fd00::/8/x/",
                "docs.example.com:0",
                "docs.example.com:65536",
                "docs.example.com:8443:1",
                "https://docs.example.com/v1",
                "https://docs.example.com/v1/../",
                "https://docs.example.com/%76/",
                "ftp://docs.example.com",
                "https://docs.example.com?q",
                "",
            )
        ],
        *[
            ("paths", path)
            for path in (
                "work",
                "",
                "./a",
                "/work/../etc",
                "/work/./a",
                "//work",
                "/work//a",
                "/work/*\\",
                "/work/*/",
                "/work/**",
                "/work/a**b",
                "*/key",
                "*.key",
                "**/*/*/*/*/*/*/*/*/*/a",
                "/work/?",
                "/work/[a]/",
                "/work/{a,b}/",
                "~/a",
                "/a~b",
                "/work/%2e",
                "/wörk/",
                "{cwd}/../a",
                "{home}/a",
                "/a/{cwd}/",
                "/a\n",
                "/" + "a" * 1024,
                "/a" * 33,
            )
        ],
        *[("commands", command) for command in ([], [""], ["git status"], ["git\n"], ["ls"] * 17)],
        *[("commands", command) for command in (["*"], ["git", "*"], ["git", "a;b"], ["ls", "$HOME"], ["../ls"])],
    ],
)
def test_a_value_that_can_match_no_call_is_refused(condition: str, value: Any) -> None:
    [(place, _)] = errors(("rulesets/workspace/allow", rule(**{condition: [value]})))
    assert place == f"rulesets.workspace.allow.0.{condition}.0"


def test_an_unsupported_path_pattern_is_reported_with_the_supported_syntax() -> None:
    [(_, told)] = errors(("rulesets/workspace/deny", rule(paths=["{cwd}/secrets/[ab]"])))
    assert "`*` is any characters, `**` any folders" in told


def test_a_rule_that_refuses_the_working_folder_names_it_as_a_folder() -> None:
    [(place, told)] = errors(("rulesets/workspace/deny", rule(paths=["{cwd}"])))
    assert (place, told) == ("rulesets.workspace.deny.0.paths", "write `{cwd}/`: it covers the folder itself too")
    Tools.model_validate(changed(("rulesets/workspace/allow", rule(paths=["{cwd}", "{cwd}/**/*.py", "**/*.md"]))))


@pytest.mark.parametrize(
    ("host", "allows", "refuses"),
    [
        ("docs.example.com", "https://docs.example.com", "*://docs.example.com:*"),
        ("*.example.com", "https://*.example.com", "*://*.example.com:*"),
        ("docs.example.com:8443", "https://docs.example.com:8443", "*://docs.example.com:8443"),
        ("docs.example.com:*", "https://docs.example.com:*", "*://docs.example.com:*"),
        ("https://docs.example.com", "https://docs.example.com", "https://docs.example.com"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://a.example.com/v1/", "https://a.example.com/v1/", "https://a.example.com/v1/"),
        ("10.0.0.0/8", "*://10.0.0.0/8:*", "*://10.0.0.0/8:*"),
        ("10.1.2.3", "*://10.1.2.3/32:*", "*://10.1.2.3/32:*"),
        ("fd00::/8", "*://fd00::/8:*", "*://fd00::/8:*"),
    ],
)
def test_a_host_is_normalized_for_allowing_and_refusing_rules(host: str, allows: str, refuses: str) -> None:
    form = host_form(host)
    assert form is not None
    assert (form.allows, form.refuses) == (allows, refuses)


def tools(kind: str) -> tuple[str, Any]:
    return "tools/contacts_add/arguments", {"name": kind, "email": "text"}


def where(**conditions: Any) -> list[dict[str, Any]]:
    return [{"id": "one", "tools": ["contacts_add"], "where": conditions}]


@pytest.mark.parametrize(
    ("kind", "condition", "told"),
    [
        ("value", {}, "write exactly one of `one_of`, "),
        ("value", {"prefixes": ["a"], "suffixes": ["b"]}, "write exactly one of "),
        ("value", {"optional": True}, "write exactly one of "),
        ("value", {"range": [5, 1]}, "`range` from 5 to 1 contains nothing"),
        ("value", {"length": [2, 1]}, "`length` from 2 to 1 contains nothing"),
        ("value", {"items": [None, None]}, "`items` without bounds covers everything"),
        ("value", {"range": [float("inf"), None]}, "a bound is a number"),
        ("value", {"pattern": "(a+)+"}, "`(a+)+`: not valid from character 1"),
        ("value", {"pattern": "a{1,5}[ab]"}, "`a{1,5}[ab]`: a part of varying length must share no character"),
        ("value", {"email_domains": ["Example.com"]}, "`Example.com` is not a domain"),
        ("value", {"email_domains": ["example.com:25"]}, "`example.com:25` is not a domain"),
        ("value", {"email_domains": ["10.0.0.0/8"]}, "`10.0.0.0/8` is not a domain"),
        ("value", {"sql": {"statements": ["select"]}}, "`sql` does not fit an argument of type `value`"),
        ("sql_sqlite", {"one_of": ["select 1"]}, "`one_of` does not fit an argument of type `sql_sqlite`"),
        ("sql_sqlite", {"sql": {"tables": ["a"]}}, "state the `statements` that are allowed"),
        ("value", [{"one_of": ["a"]}, {"length": [1, 2]}], "`one_of` states the values already"),
        ("value", [{"prefixes": ["a"]}, {"prefixes": ["b"]}], "write each kind of condition once"),
        ("value", [{"prefixes": ["a"], "optional": True}, {"length": [1, 2]}], "write `optional` in all conditions"),
        ("text", {"one_of": ["a"]}, "an argument of type `text` has no conditions here: declare it as `value`"),
        ("path", {"one_of": ["a"]}, "an argument of type `path` has no conditions here: use `paths`"),
        ("url", {"prefixes": ["a"]}, "an argument of type `url` has no conditions here: use `hosts`"),
    ],
)
def test_a_condition_that_no_call_could_meet_is_refused(kind: str, condition: Any, told: str) -> None:
    found = errors(tools(kind), ("rulesets/workspace/allow", where(name=condition)))
    assert {place for place, _ in found} == {"rulesets.workspace.allow.0.where.name"}
    assert any(one.startswith(told) for _, one in found), found


@pytest.mark.parametrize(
    "condition", [{"one_of": []}, {"prefixes": [""]}, {"sql": {"statements": ["scan"]}}, [], {"x": 1}]
)
def test_a_malformed_argument_condition_is_refused(condition: Any) -> None:
    found = errors(tools("value"), ("rulesets/workspace/allow", where(name=condition)))
    assert all(place.startswith("rulesets.workspace.allow.0.where.name") for place, _ in found)
    assert found


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("any", "`any` is for allow rules: leave the argument out"),
        ({"one_of": ["\u200b"]}, "`?` has no characters that are compared"),
    ],
)
def test_an_unusable_condition_in_a_deny_rule_is_refused(condition: Any, told: str) -> None:
    [(place, found)] = errors(tools("text"), ("rulesets/workspace/deny", where(name=condition)))
    assert (place, found) == ("rulesets.workspace.deny.0.where.name", told)


def test_a_rule_on_an_argument_missing_in_a_tool_is_refused() -> None:
    conditional = [{"id": "one", "tools": ["*"], "where": {"email": {"one_of": ["a"]}}}]
    [(place, told)] = errors(("rulesets/workspace/deny", conditional))
    assert place == "rulesets.workspace.deny.0.where.email"
    assert told.endswith("has no argument `email`")


def test_only_arguments_named_by_rules_become_facts() -> None:
    laid = changed(tools("value"), ("rulesets/workspace/deny", where(email={"suffixes": [".test"]})))
    values = Tools.model_validate(laid).model_dump(mode="json", exclude_none=True)
    assert ruled_arguments(values) == {"contacts_add": {"email": "text", "name": "value"}}
    assert ruled_arguments({}) == {}


@pytest.mark.parametrize("which", ["all", "plain", "next"])
def test_words_without_hosts_must_be_command_prefixes(which: str) -> None:
    for words in ([], ["git *"], ["cat", "*"], ["cat;"]):
        assert errors((f"words_without_hosts/{which}", [words]))[0][0] == f"words_without_hosts.{which}.0"
    lookup = looked_up((f"words_without_hosts/{which}", [["cat"], ["git", "log"]]))
    assert lookup["words_without_hosts"][which] == {"command 1 cat": True, "command 2 git log": True}


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("hosts", "https://docs.example.com"),
        ("hosts", "https://docs.example.com:8443"),
        ("hosts", "http://127.0.0.1:8080"),
        ("paths", "/"),
        ("paths", "/etc/passwd"),
        ("paths", "{cwd}/"),
        ("paths", "{cwd}/a b/c.txt"),
        ("commands", ["git", "status"]),
        ("commands", ["ls"] * 16),
        ("commands", ["find", "-name", "*.py"]),
    ],
)
def test_a_value_that_can_match_calls_is_accepted(condition: str, value: Any) -> None:
    Tools.model_validate(changed(("rulesets/workspace/allow", rule(**{condition: [value]}))))


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("rulesets/workspace/deny", rule(tools=[]), "rulesets.workspace.deny.0.tools"),
        ("rulesets/workspace/deny", rule(tools=["*a"]), "rulesets.workspace.deny.0.tools.0"),
        ("rulesets/workspace/deny", rule(tools=["Group:a"]), "rulesets.workspace.deny.0.tools.0"),
        ("groups/contacts", [], "groups.contacts"),
        ("tools/shell/side_effects", [], "tools.shell.side_effects"),
        ("tools/shell/side_effects", ["exec"], "tools.shell.side_effects.0"),
        ("tools/shell/definition", "sha256:x", "tools.shell.definition"),
        ("tools/shell/arguments", {"command": "words"}, "tools.shell.arguments.command"),
        ("policies/assistant/base", "allow_all", "policies.assistant.base"),
        ("limits/seconds", 0, "limits.seconds"),
        ("limits/seconds", 3_601, "limits.seconds"),
    ],
)
def test_other_mistakes_are_reported_at_their_fields(path: str, value: Any, where: str) -> None:
    places = [place for place, _ in errors((path, value))]
    assert any(place == where or place.startswith(f"{where}.") for place in places)


@pytest.mark.parametrize("name", ["tools", "policies", "rulesets"])
def test_no_field_of_a_row_may_be_left_out(name: str) -> None:
    row = {"tools": "shell", "policies": "assistant", "rulesets": "workspace"}[name]
    for field in SHIPPED[name][row]:
        change = (f"{name}/{row}/{field}", shipped.DROP)
        assert errors(change) == [(f"{name}.{row}.{field}", "Field required")]


def test_each_tool_lists_the_selectors_that_match_it() -> None:
    lookup = looked_up(
        ("groups/all_files", ["group:workspace_files", "contacts_*"]),
        ("profiles/reading", ["group:all_files", "files_*", "shell"]),
    )
    assert lookup["tools"]["files_read"]["selectors"] == ["*", "files_*", "files_read", "group:all_files"]
    assert lookup["tools"]["contacts_add"]["selectors"] == ["*", "group:all_files"]
    assert lookup["tools"]["shell"]["selectors"] == ["*", "shell"]
    assert lookup["profiles"]["reading"] == {"group:all_files": True, "files_*": True, "shell": True}
    assert lookup["tools"].keys() == SHIPPED["tools"].keys()


def test_rules_are_numbered_in_evaluation_order() -> None:
    lookup = looked_up(("rulesets/delegation/deny", rule(id="second", tools=["*"], paths=["/ETC/", "{cwd}/Keys/"])))
    deny = lookup["policies"]["orchestrator"]["deny"]
    assert deny["names"] == ["workspace/no_system_files", "delegation/second"]
    assert deny["selectors"]["*"]["/etc/"] == 0
    assert deny["selectors"]["*"]["{cwd}/keys/"] == 1
    assert deny["selectors"]["*"]["any path without cwd"] == 1


def test_conditions_become_lookup_aspects() -> None:
    rules = rule(hosts=["http://127.0.0.1:80" + "80"], paths="any", commands=[["Git", "status"]])
    lookup = looked_up(("rulesets/workspace/allow", rules), ("rulesets/workspace/confirm", [{**rules[0], "id": "two"}]))
    allow = lookup["policies"]["assistant"]["allow"]
    aspects = {"host http://127.0.0.1:8080", "any path", "command 2 Git status"}
    assert allow["covers"] == [dict.fromkeys(aspects, True)]
    assert allow["selectors"]["http_get"] == {one: {"rules": [0], "size": 1} for one in {*aspects, "always"}}
    confirm = lookup["policies"]["assistant"]["confirm"]["selectors"]["http_get"]
    refused = {"host http://127.0.0.1:8080", "any path", "kept any path", "unread any path", "unread kept any path"}
    refused |= {"command 2 git status"}
    assert confirm == dict.fromkeys(refused, 0)


def test_what_commands_can_do_is_stated_once_for_a_rule_or_for_one_command() -> None:
    entries: list[Any] = [["make"], {"words": ["sort"], "can": ["redirect"]}]
    stated = looked_up(("rulesets/workspace/allow", rule(commands=entries, can=["write"])))
    each = [{"words": ["make"], "can": ["write"]}, {"words": ["sort"], "can": ["redirect"]}]
    assert stated == looked_up(("rulesets/workspace/allow", rule(commands=each)))


@pytest.mark.parametrize(
    ("section", "stated"),
    [
        ("deny", {"commands": [["rm"]]}),
        ("confirm", {"commands": [["rm"]]}),
        ("allow", {"commands": "any"}),
        ("allow", {}),
    ],
)
def test_a_rule_without_commands_to_allow_states_no_abilities(section: str, stated: dict[str, Any]) -> None:
    [(place, told)] = errors((f"rulesets/workspace/{section}", rule(**stated, can=["write"])))
    assert place == f"rulesets.workspace.{section}.0.can"
    assert "in allow rules with a list of `commands` only" in told


def test_the_lookup_is_deterministic() -> None:
    shuffled = {key: SHIPPED[key] for key in reversed(SHIPPED)}
    values = [Tools.model_validate(one).model_dump(mode="json", exclude_none=True) for one in (SHIPPED, shuffled)]
    first, second = (
        json.dumps(derived({"tools": one, "commands": {"programs": {}}}), sort_keys=True) for one in values
    )
    assert first == second


def test_the_size_grows_with_the_rules_and_not_with_rules_times_tools() -> None:
    def size(rules: int, tools: int) -> int:
        many = {f"tool_{number}": SHIPPED["tools"]["shell"] for number in range(tools)}
        allow = [{"id": f"r{one}", "tools": ["*", "group:all"], "paths": [f"/p{one}/"]} for one in range(rules)]
        return len(
            json.dumps(
                looked_up(
                    ("tools", SHIPPED["tools"] | many),
                    ("groups/all", ["tool_*", "shell"]),
                    ("rulesets/workspace/allow", allow),
                )
            )
        )

    grown = size(500, 500) - size(10, 500)
    assert grown < 1.05 * (size(500, 1) - size(10, 1))
