"""`engine tools list`, `explain` and `call`: what an agent sees, why a call is refused, and what to change."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.cli.options import Sources
from engine.cli.tools import requests as asked
from engine.cli.tools.explain import CallExplanation, explained
from engine.cli.tools.list_tools import listing
from engine.engine import Engine
from engine.errors import Exit
from engine.settings import Settings
from tests.command import Command, Run, decisions
from tests.conftest import ROOT
from tests.expect import there

VALUES = Path(__file__).parent / "tools.yaml"
DOCS, OTHER = "https://docs.example.com/page", "https://other.example.net/page"
AGENT = ("--tool-policy", "assistant", "--profile", "coding", "--principal", "agent-7", "--cwd", "/work")


@pytest.fixture
def policy(policy: Path) -> Path:
    """policy/ as shipped, with the tools of tools.yaml."""
    shutil.copyfile(VALUES, policy / "tools.yaml")
    return policy


Tools = Callable[..., Run]


@pytest.fixture
def tools(command: Command, policy: Path) -> Tools:
    """`engine tools …` where policy/ is below the current folder; `call` is given on standard input."""

    def run(*arguments: str, call: Any = None, **how: Any) -> Run:
        given = ("-i", "-") if call is not None else ()
        text = "" if call is None else json.dumps(call)
        return command("tools", *arguments, *given, "--policy", "policy", cwd=policy.parent, stdin=text, **how)

    return run


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Engine]:
    """One engine under tools.yaml, for what needs no command."""
    folder = tmp_path_factory.mktemp("tools")
    shutil.copytree(Settings().policy, folder / "policy")
    shutil.copyfile(VALUES, folder / "policy" / "tools.yaml")
    with Engine(Settings(state=folder / "state", cache=cache, policy=folder / "policy")) as running:
        yield running


def own(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def test_list_for_people(tools: Tools, snapshot: SnapshotAssertion) -> None:
    run = tools("list", "--tool-policy", "assistant", "--profile", "reading")
    assert (run.code, run.stderr) == (0, "")
    assert run.stdout == snapshot


# covers: B01.1 B03.1 B15.1
@pytest.mark.parametrize(
    ("options", "visible"),
    [
        ((), []),
        (("--profile", "coding"), []),
        (("--tool-policy", "bare", "--profile", "coding"), []),
        (("--tool-policy", "nowhere", "--profile", "coding"), []),
        (("--tool-policy", "assistant"), []),
        (("--tool-policy", "assistant", "--profile", "reading"), ["files_read", "http_get"]),
        (
            ("--tool-policy", "assistant", "--profile", "coding"),
            ["files_read", "http_get", "shell", "table_drop"],
        ),
    ],
    ids=str,
)
def test_list_shows_visible_tools(engine: Engine, options: tuple[str, ...], visible: list[str]) -> None:
    stated = dict(zip(options[::2], options[1::2], strict=True))
    wanted = {"policy": stated.get("--tool-policy"), "profile": stated.get("--profile")}
    rows = listing(engine, wanted, Sources().context())
    assert [row.tool for row in rows if row.visible] == visible
    assert all(row.hidden_for for row in rows if not row.visible)


def test_list_shows_the_outcome_of_a_call_and_the_value_behind_it(engine: Engine) -> None:
    lines = VALUES.read_text(encoding="utf-8").splitlines()

    def told(tool: str, principal: str | None = None, **stated: str | None) -> tuple[str, str, str]:
        rows = listing(engine, {"policy": None, "profile": None, **stated}, Sources(principal=principal).context())
        (row,) = [one for one in rows if one.tool == tool]
        assert row.where is not None
        return row.call, row.by, lines[there(row.where.line) - 1].strip()

    coding = {"policy": "assistant", "profile": "coding"}
    wanted = ("a person is asked", "rule workspace/ask_before_drop", "- {id: ask_before_drop, tools: [table_drop]}")
    assert told("table_drop", **coding) == wanted
    assert told("http_get", **coding)[:2] == ("a person is asked", "base confirm_all")
    assert told("shell", **coding)[:2] == ("a person is asked", "base confirm_all")
    assert told("shell", **coding)[2].startswith("assistant: {base: confirm_all")
    strict = {"policy": "strict", "profile": "coding"}
    assert told("shell", "agent-7", **strict)[:2] == ("denied", "base deny_all_visible")
    assert told("http_get", "lee", **strict)[:2] == ("denied", "policy strict does not grant it")
    assert told("files_read")[1] == "no policy is stated"
    assert told("files_read", policy="nowhere")[1] == "there is no policy nowhere"
    wanted = ("denied", "profile reading does not grant it", 'reading: [files_read, "group:remote"]')
    assert told("shell", policy="assistant", profile="reading") == wanted


def test_looking_at_the_list_is_one_dry_run(tools: Tools, command: Command) -> None:
    tools("list", "--tool-policy", "assistant", "--profile", "coding")
    assert [(line["point"], line["mode"]) for line in decisions(command.state)] == [("tool_visibility", "check")]


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "call",
    [
        own("http_get", url=OTHER),
        own("shell", command=["git", "status", "--short"]),
        own("shell", command=["rm", "-rf", "x"]),
        own("files_read", path="/srv/notes.txt"),
    ],
    ids=["host", "command", "denied_command", "path"],
)
def test_explain_for_people(tools: Tools, call: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    run = tools("explain", call["name"], *AGENT, call=call)
    assert run.stderr == ""
    assert run.stdout == snapshot


READER = ("--tool-policy", "assistant", "--profile", "reading")
LEE = ("--tool-policy", "strict", "--profile", "coding", "--principal", "lee")
NEEDED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "tool": (own("git_push"), "tool_unknown", "write an entry", "tools:"),
    "policy_stated": (own("shell"), "tool_not_in_profile", "ask under one of these policies", "policies:"),
    "policy": (own("shell"), "tool_policy_unknown", "ask under one of these policies: `assistant`", "policies:"),
    "principal": (own("shell"), "tool_policy_principal", "add `lee` to `principals` of the policy", "strict:"),
    "profile": (own("shell"), "tool_not_in_profile", "add `shell` to the profile `reading`", "reading:"),
    "other_profile": (own("shell"), "tool_not_in_profile", "a profile that includes it: `coding`", "profiles:"),
    "no_deny_rule": (
        own("shell", command=["rm", "x"]),
        "denied_by_rule",
        "narrow the deny rule `workspace/no_removing` (commands [rm])",
        "- {id: no_removing,",
    ),
    "no_confirm_rule": (
        own("table_drop", table="t"),
        "confirmation_by_rule",
        "narrow the confirm rule `workspace/ask_before_drop` (every call by name)",
        "- {id: ask_before_drop,",
    ),
    "host": (
        own("http_get", url=OTHER),
        "confirmation_by_default",
        'add "https://other.example.net" to `hosts` of the allow rule `workspace/docs`',
        "- {id: docs,",
    ),
    "path": (
        own("files_read", path="/srv/notes.txt"),
        "confirmation_by_default",
        "add /srv/notes.txt to `paths` of the allow rule `workspace/own_folder`",
        "- {id: own_folder,",
    ),
    "type": (
        own("http_get", url=DOCS, pin="x"),
        "argument_untyped",
        "state the type of the argument `pin`",
        "arguments: {url: url, note: text}",
    ),
    "secret": (
        own("http_get", url=DOCS, note="ghp_" + "a1B2" * 9),
        "secret_in_arguments",
        "write `secrets: true`",
        "secrets: false",
    ),
}
"""What keeps a call from being allowed: the call, a code, the change that is told, and the line it names."""
ASKERS = {"policy_stated": (), "policy": ("--tool-policy", "x"), "principal": LEE}
ASKERS |= {"profile": READER, "other_profile": READER}
"""The caller, where it is not the agent."""


def told_of(engine: Engine, call: dict[str, Any], options: tuple[str, ...]) -> CallExplanation:
    """What `engine tools explain` would tell of a call in any shape."""
    stated = dict(zip(options[::2], options[1::2], strict=True))
    asker = Sources(principal=stated.get("--principal")).context()
    request = asked.request(call, stated.get("--tool-policy"), stated.get("--profile"), stated.get("--cwd"), None)
    answer = engine.check("tool_call", request, asker)
    return explained(engine, answer, "call", asker.caller.principal)


@pytest.mark.parametrize("need", NEEDED)
def test_explain_says_what_to_change_and_where(engine: Engine, need: str) -> None:
    call, code, change, line = NEEDED[need]
    told = told_of(engine, call, ASKERS.get(need, AGENT))
    assert code in {finding.code for finding in told.report.decision.findings}
    fitting = [one.where for one in told.changes if change in one.text]
    assert fitting, told.changes
    lines = VALUES.read_text(encoding="utf-8").splitlines()
    numbers = [where.line for where in fitting if where is not None and where.line is not None]
    assert any(line in "\n".join(lines[number - 2 : number]) for number in numbers), fitting


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (own("http_get", url="https:\\\\docs.example.com"), "destination_not_canonical"),
        (own("shell", command="ls; $X x"), "command_not_canonical"),
        (own("table_drop", table="t"), "irreversible_destructive_action"),
    ],
    ids=["destination", "command", "effect"],
)
def test_a_finding_that_no_value_can_change_is_addressed_to_the_caller(
    engine: Engine, call: dict[str, Any], code: str
) -> None:
    told = told_of(engine, call, AGENT)
    (finding,) = [item.finding for item in told.report.explained if item.finding.code == code]
    assert any(one.text.startswith(finding.remedy) and one.where is None for one in told.changes)


@pytest.mark.parametrize(
    "call", [own("shell", command=["rm", "x"]), own("table_drop", table="t")], ids=["deny", "confirm"]
)
def test_no_allow_rule_is_suggested_where_a_rule_refuses_or_asks(engine: Engine, call: dict[str, Any]) -> None:
    told = " ".join(one.text for one in told_of(engine, call, AGENT).changes)
    assert "narrow the" in told
    assert "allow rule `" not in told
    assert "prefixes approve" not in told


@pytest.mark.parametrize(
    "call", [own("shell", command="ls ~/x"), own("http_get", url="https:\\\\docs.example.com")], ids=["path", "url"]
)
def test_neither_a_rule_nor_an_approval_is_suggested_where_the_call_must_change(
    engine: Engine, call: dict[str, Any]
) -> None:
    (told,) = told_of(engine, call, AGENT).changes
    assert told.text.startswith("Write ")


def test_a_call_denied_for_lack_of_a_working_folder_gets_the_cwd_hint(engine: Engine) -> None:
    """A rule on the working folder matches every path of a call that names none."""
    call = own("files_read", path="/work/notes.txt")
    (change,) = told_of(engine, call, AGENT[:-2]).changes
    assert change.text.startswith("name the working folder with `--cwd`")
    assert "workspace/no_keys" in change.text
    named = told_of(engine, call, AGENT)
    assert named.report.decision.outcome == "allow"
    assert "narrow the deny rule" in told_of(engine, own("files_read", path="/work/keys/a"), AGENT).changes[0].text


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("text", "less"),
    [
        ("git status", ("status", "log")),
        ("wc -l $FILE", (", can: [unknown]", "")),
        ("wc -l notes.txt > count.txt", ("redirect", "read")),
        ("find . -name '*.py' | xargs grep -l foo", ("unknown", "execute")),
        ("FOO=1 make test &", ("unknown", "execute")),
    ],
)
def test_the_suggested_rule_allows_the_call(tools: Tools, policy: Path, text: str, less: tuple[str, str]) -> None:
    """The rule that is told to be written, written where it is told, allows the call; a smaller one does not."""
    call = own("shell", command=text)
    told = tools("explain", "shell", *AGENT, "--format", "json", call=call).json["changes"]
    (change,) = [one for one in told if one["text"].startswith("write a rule under `allow`")]
    rule = change["text"].split("\n")[1]
    file = policy / "tools.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    for written, code in ((rule.replace(*less), 3), (rule, 0)):
        changed = [*lines[: change["where"]["line"]], f"      {written}", *lines[change["where"]["line"] :]]
        file.write_text("\n".join(changed), encoding="utf-8")
        assert tools("explain", "shell", *AGENT, call=call).code == code


def test_only_what_no_rule_covers_is_suggested(command: Command) -> None:
    """Of several commands the one that no rule allows, for rules that lack nothing else; each remedy once."""
    text = "git status && git push --frob $REMOTE main && ls > out.txt"
    recipe = ("--recipe", ROOT / "bundles" / "coding_agent", "--tool-policy", "coding", "--profile", "coding")
    data = json.dumps(own("Bash", command=text)).encode()
    run = command("tools", "explain", "Bash", *recipe, "--cwd", "/work", "--format", "json", "-i", "-", stdin=data)
    told = [one["text"] for one in run.json["changes"]]
    added = [one for one in told if one.startswith("add ")]
    assert 0 < len(added) <= 2, told
    assert all("[git, push," in one and one.count("`commands`") == 1 for one in added), added
    assert [one for one in told if "status" in one or "out.txt" in one] == []
    (remedy,) = [one for one in told if one.startswith("Leave that part out")]
    assert "bundles/coding_agent/values/commands.yaml" in remedy


@pytest.mark.full
def test_the_suggested_command_prefix_allows_the_call(tools: Tools, command: Command) -> None:
    call = own("shell", command=["git", "status", "--short"])
    told = tools("explain", "shell", *AGENT, "--format", "json", call=call).json["changes"]
    (change,) = [one for one in told if "approve the command prefix" in one["text"]]
    words = change["text"].split("\n")[1].split()
    assert words[:4] == ["engine", "tools", "prefixes", "approve"]
    assert command(*words[1:]).code == 0
    run = tools("explain", "shell", *AGENT, call=call)
    assert run.code == 0
    matched = r"^  matched +prefix:[0-9a-f]{32}: its words were compared as text; which program runs was not looked at$"
    assert re.search(matched, run.stdout, re.MULTILINE)
    assert "uncovered" not in run.stdout


def test_every_shape_gets_the_same_explanation(engine: Engine) -> None:
    arguments = {"url": OTHER}
    text = json.dumps(arguments)
    shapes: list[dict[str, Any]] = [
        own("http_get", **arguments),
        {"id": "1", "type": "function", "function": {"name": "http_get", "arguments": text}},
        {"type": "function_call", "call_id": "1", "name": "http_get", "arguments": text},
        {"type": "tool_use", "id": "1", "name": "http_get", "input": arguments},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "http_get", "arguments": arguments}},
        {"call": own("http_get", **arguments), "policy": "assistant", "cwd": "/work"},
    ]
    told = [told_of(engine, shape, AGENT) for shape in shapes]
    assert {one.report.exit for one in told} == {Exit.CONFIRM}
    assert len({(one.changes, one.report.decision.findings, one.report.decision.input_digest) for one in told}) == 1


def test_without_a_call_it_is_one_without_arguments(tools: Tools, command: Command) -> None:
    run = tools("explain", "http_get", *AGENT)
    assert (run.code, "confirmation_by_default" in run.stdout) == (3, True)
    assert [(line["point"], line["mode"]) for line in decisions(command.state)] == [("tool_call", "check")]


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("call", "options", "said"),
    [
        (own("shell"), (), "the call names the tool `shell`"),
        ({"type": "function", "function": {"name": "shell", "arguments": "{}"}}, (), "the call names the tool `shell`"),
        (
            {"call": own("http_get"), "policy": "strict"},
            ("--tool-policy", "assistant"),
            "different values for `policy`",
        ),
        ({"call": own("http_get"), "cwd": "/a"}, ("--cwd", "/b"), "different values for `cwd`"),
    ],
    ids=str,
)
def test_contradictions_are_refused(tools: Tools, call: Any, options: tuple[str, ...], said: str) -> None:
    tools("explain", "http_get", *options, call=call).refused(said)


@pytest.mark.full(after=1)
@pytest.mark.parametrize("verb", [("explain", "http_get"), ("call",)], ids=lambda verb: verb[0])
def test_a_malformed_call_is_a_recorded_refusal(tools: Tools, command: Command, verb: tuple[str, ...]) -> None:
    for number, call in enumerate(([], "http_get", {}, {"name": "http_get"}, {"type": "tool_use"}), start=1):
        run = tools(*verb, *AGENT, call=call)
        assert run.code == 2, call
        assert "engine.request_invalid" in run.stdout, call
        assert [line["outcome"] for line in decisions(command.state)] == ["deny"] * number, call


def test_a_call_is_decided_for_real_and_runs_nothing(tools: Tools, command: Command) -> None:
    run = tools("call", *AGENT, call=own("http_get", url=DOCS))
    assert (run.code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1].startswith("no tool was run: this command only decides; limits: tool http_get")
    assert "dry run" not in run.stdout
    (line,) = decisions(command.state)
    assert (line["mode"], line["outcome"], line["principal"]) == ("enforce", "allow", "agent-7")
    assert line["limits"]["rule"] == "workspace/docs"


# covers: B04
@pytest.mark.full
def test_a_person_approves_exactly_this_call(tools: Tools, command: Command) -> None:
    call = own("http_get", url=OTHER)
    asked = tools("call", *AGENT, call=call)
    assert asked.code == 3
    id_ = asked.stdout.rpartition("--approval ")[2].strip()
    assert asked.stdout.splitlines()[-1] == (
        f"no tool was run; to approve this one call: engine approvals grant {id_}; then ask again with --approval {id_}"
    )
    assert tools("call", *AGENT, "--approval", id_, call=call).code == 1  # nobody has granted it yet
    assert command("approvals", "grant", id_).code == 0
    assert tools("call", *AGENT, "--approval", id_, call=own("http_get", url=f"{OTHER}?x")).code == 1
    done = tools("call", *AGENT, "--approval", id_, call=call)
    assert (done.code, "possible changes" in done.stdout) == (0, False)
    assert tools("call", *AGENT, "--approval", id_, call=call).code == 1  # once


def test_a_refused_call_ends_with_1(tools: Tools) -> None:
    run = tools("call", "--profile", "coding", call=own("http_get", url=DOCS))
    assert run.code == 1
    assert run.stdout.endswith("no tool was run: this call is not allowed\n")
    assert tools("call", "--profile", "coding", "--format", "json", call=own("http_get", url=DOCS)).json["exit"] == 1


@pytest.mark.full
def test_a_broken_policy_ends_with_5_for_the_list_and_a_refusal_for_a_call(tools: Tools, policy: Path) -> None:
    (policy / "tools.yaml").write_text("tools: {}\n", encoding="utf-8")
    assert tools("list").code == 5
    run = tools("call", *AGENT, call=own("http_get", url=DOCS))
    assert run.code == 5
    assert "nothing is allowed" in run.stdout


def test_a_call_that_touches_private_data_names_its_run(command: Command) -> None:
    call = json.dumps(own("contacts_list", search="jane"))
    asked_for = ("tools", "call", "-i", "-", *AGENT)
    unnamed = command(*asked_for, stdin=call)
    assert (unnamed.code, "run_unnamed" in unnamed.stdout, "--run" in unnamed.stdout) == (3, True, True)
    named = command(*asked_for, "--run", "run-1", stdin=call)
    assert named.code == 0, named.stdout
    assert [line["run"] for line in decisions(command.state)] == [None, "run-1"]
    assert command("tools", "explain", "contacts_list", "-i", "-", *AGENT, "--run", "run-1", stdin=call).code == 0
