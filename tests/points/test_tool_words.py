"""What a word of a command, or a value of `data`, may be besides what it looks like: a host, a path, the end of a link.

Each ambiguous word is refused where the rules cover one of its readings only; the same call beside it is allowed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cases.run import Runner

PROGRAMS = (
    *("curl", "wget", "ssh", "scp", "rsync", "nc", "ping", "git", "tar", "python", "sh", "cat", "ls", "grep", "tool"),
    *("make", "perl", "cp", "sed", "unheard-of"),
)
ENDINGS = ("py", "md", "sh", "rs", "pl", "cc", "zip", "so", "mk", "ps", "tf", "pub", "app", "in", "js", "txt")
BY_HOST = "https://docs.example.com"


def values(allow: dict[str, Any], deny: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    rules = {
        "deny": [{"id": f"no_{number}", "tools": ["*"], **one} for number, one in enumerate(deny)],
        "confirm": [],
        "allow": [{"id": "run", "tools": ["shell", "notes"], **allow}],
    }
    notes = {
        "title": "Keep a note",
        "side_effects": ["write"],
        "reversal": [],
        "arguments": {"body": "data"},
        "secrets": False,
        "paths_on": "this_machine",
        "environments": ["workspace"],
        "curated": [],
        "definition": "none",
    }
    return {
        "tools": {
            "tools": {"+notes": notes},
            "rulesets": {"workspace": rules},
            "policies": {"assistant": {"base": "deny_all_visible"}},
        }
    }


BY_COMMAND = values({"commands": [[program] for program in PROGRAMS]})
ANYWHERE = values({"commands": "any", "hosts": "any", "paths": "any"})
ONE_HOST = values({"commands": "any", "paths": "any", "hosts": [BY_HOST, "https://attacker.pl"]})
NO_SECRETS = values(
    {"commands": "any", "hosts": "any", "paths": "any"},
    ({"paths": ["{cwd}/secrets/", "/etc/"]}, {"hosts": ["https://attacker.pl"]}),
)


def decided(runner: Runner, laid: dict[str, Any], arguments: dict[str, Any], cwd: str | None = "/work") -> list[str]:
    """The codes of the findings; none for a call that is allowed."""
    tool = "notes" if "body" in arguments else "shell"
    request = {"call": {"name": tool, "arguments": arguments}, "policy": "assistant", "profile": "coding", "cwd": cwd}
    decision = runner.engine(laid).check("tool_call", request).decision
    codes = sorted({finding.code for finding in decision.findings})
    assert (decision.outcome == "allow") is (codes == []), decision
    return codes


def command(runner: Runner, laid: dict[str, Any], text: str, cwd: str | None = "/work") -> list[str]:
    """A command as its words and as one text, which are decided alike where a shell only splits it."""
    found = decided(runner, laid, {"command": text.split(" ")}, cwd)
    assert "[" in text or decided(runner, laid, {"command": text}, cwd) == found
    return found


def besides_parts(codes: list[str]) -> list[str]:
    """Without the finding about options of the same command, which other tests are about."""
    return [code for code in codes if code != "command_part_not_permitted"]


# covers: B07 B10
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_word_that_ends_like_a_file_may_be_a_host(runner: Runner, ending: str) -> None:
    for program in ("curl", "unheard-of"):
        assert command(runner, BY_COMMAND, f"{program} attacker.{ending}") == ["denied_by_default"]
    assert command(runner, ANYWHERE, f"curl attacker.{ending}") == []
    assert command(runner, BY_COMMAND, f"cat attacker.{ending}") == []


@pytest.mark.parametrize(
    "word",
    ["2852039166/x", "127.1:80/x", "0:80", "0", "2852039166", "0x7f.1/x", "017700000001", "025177524776/x", "127.1",
     "root@2852039166", "1.1/x", "1.5:80", "::1/x", "root@::1", "[::1]:80/x", "fe80::1%eth0", "2130706433:8080"],
)  # fmt: skip
def test_an_ip_address_in_any_spelling_is_refused(runner: Runner, word: str) -> None:
    assert command(runner, BY_COMMAND, f"curl {word}") != []
    assert "destination_not_canonical" in command(runner, ANYWHERE, f"curl {word}")


# covers: B07 B10
@pytest.mark.parametrize(
    "text",
    ["ssh evil", "scp f evil:x", "ssh user@evil", "rsync f evil::module", "git clone evil:repo", "curl evil/x",
     "curl evil:8080", "nc evil 80", "ping evil", "curl --proxy=evil x", "curl -xevil:80 x", "wget Evil.PL",
     "ssh -J evil,other x", "tar cf evil:x", "python client.py evil", "sh -c 'curl evil'",
     "tar xf a.tar --to-command 'curl evil'", "sed '1e curl evil' f"],
)  # fmt: skip
def test_one_label_may_be_a_host(runner: Runner, text: str) -> None:
    assert besides_parts(decided(runner, BY_COMMAND, {"command": text})) == ["denied_by_default"]
    assert decided(runner, ANYWHERE, {"command": text}) == []
    assert besides_parts(decided(runner, ONE_HOST, {"command": text})) == ["denied_by_default"]


@pytest.mark.parametrize("text", ["git commit -m 'fix the bug'", "grep 'a b' f", "sed -n 5p f", "echo 'see a.pl'"])
def test_quoted_text_of_ordinary_programs_is_not_a_host(runner: Runner, text: str) -> None:
    laid = values({"commands": [["git"], ["grep"], ["sed"], ["echo"]]})
    assert decided(runner, laid, {"command": text}) == []


@pytest.mark.parametrize(
    "text",
    ["python script.py", "sh build.sh", "cat notes.pl", "git status", "ls -la src/", "grep -r TODO .",
     "tar tf a.tar.gz", "git commit -m fixed", "git show HEAD:notes.md", "cat 127.1:80/x", "ls 2026/11",
     "git add src/a.py", "cp a.py b.py", "ls", "cat -n notes.txt"],
)  # fmt: skip
def test_commands_that_read_no_hosts_need_no_host_rule(runner: Runner, text: str) -> None:
    assert command(runner, BY_COMMAND, text) == []


def test_a_command_rule_covers_only_the_words_it_names(runner: Runner) -> None:
    laid = values({"commands": [["unheard-of", "build"], ["ssh", "buildhost"]]})
    for text in ("unheard-of build", "ssh buildhost"):
        assert command(runner, laid, text) == []
    for text in ("unheard-of build evil", "ssh buildhost evil", "unheard-of build attacker.pl"):
        assert command(runner, laid, text) == ["denied_by_default"]


def test_a_rule_on_a_host_covers_and_refuses_it_in_every_spelling(runner: Runner) -> None:
    for word in ("attacker.pl", "Attacker.PL", "attacker.pl.", "attacker.pl/x"):
        assert command(runner, NO_SECRETS, f"curl {word}") != [], word
    assert command(runner, ONE_HOST, "cat attacker.pl") == []
    laid = values({"commands": [["curl"]], "hosts": ["https://attacker.pl"]})
    assert command(runner, laid, "curl attacker.pl") == []
    assert command(runner, laid, "curl attacker.sh") == ["denied_by_default"]


# covers: B07 B10
@pytest.mark.parametrize(
    "word",
    ["secrets/key", "secrets//key", "secrets/./key", "./secrets//key", "--output=secrets//x", "-osecrets/x",
     "of=secrets//x", "@secrets/x", "-d@secrets/./x", "secrets", "SECRETS//key", "f=@secrets//x",
     "-vosecrets//x", "secrets///key"],
)  # fmt: skip
def test_a_deny_rule_on_a_folder_covers_every_spelling_of_it(runner: Runner, word: str) -> None:
    assert "denied_by_rule" in command(runner, NO_SECRETS, f"cat {word}")
    public = word.replace("secrets", "public").replace("SECRETS", "public")
    assert "denied_by_rule" not in command(runner, NO_SECRETS, f"cat {public}")


@pytest.fixture
def cloned(tmp_path: Path) -> str:
    """A working folder that came with links."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "a.txt").write_text("a", encoding="utf-8")
    (work / "link_etc").symlink_to("/etc")
    (work / "up").symlink_to("../..")
    (work / "hop").symlink_to("link_etc")
    (work / "round").symlink_to("round")
    (work / "name").symlink_to("/etc/hostname")
    (work / "also").symlink_to("src")
    return str(work)


# covers: B07 B10
@pytest.mark.parametrize(
    "word",
    ["link_etc/hostname", "link_etc", "up/x", "hop/hostname", "name", "--file=link_etc/hostname", "@name",
     "link_etc//hostname", "-flink_etc/hostname", "round/x"],
)  # fmt: skip
def test_a_word_counts_as_what_a_link_leads_to(runner: Runner, cloned: str, word: str) -> None:
    assert command(runner, BY_COMMAND, f"cat {word}", cloned) != []
    if "etc" in word or "hop" in word or "name" in word:
        assert "denied_by_rule" in command(runner, NO_SECRETS, f"cat {word}", cloned)
    assert command(runner, BY_COMMAND, "cat src/a.txt", cloned) == []
    assert command(runner, BY_COMMAND, "cat also/a.txt", cloned) == []  # a link that stays in the folder


# covers: B07 B10
@pytest.mark.parametrize(
    "word",
    ["*", "*/hostname", "link_*/hostname", "l*/*", "n*", "na[m]e", "na[!x]e", "[n]ame", "?ame", "{n*,src/*}",
     "src/i*/hostname", "s[r]c/[i]n/hostname", "*/in/*", "al*/*/hostname", "a*/i*/h*"],
)  # fmt: skip
def test_a_pattern_counts_as_what_links_lead_to(runner: Runner, cloned: str, word: str) -> None:
    (Path(cloned) / "src" / "in").symlink_to("/etc")
    assert command(runner, BY_COMMAND, f"cat {word}", cloned) != []
    assert "denied_by_rule" in command(runner, NO_SECRETS, f"cat {word}", cloned)


def test_a_pattern_that_meets_no_link_out_of_the_folder_is_allowed(runner: Runner, cloned: str) -> None:
    for other in ("src/*.txt", "s*/a.txt", "al*/a.txt", "missing/*", "src/a.[tu]xt/*"):
        assert command(runner, BY_COMMAND, f"cat {other}", cloned) == [], other


def test_a_pattern_in_a_huge_folder_is_not_looked_at(runner: Runner, cloned: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("engine.facts.tools.arguments.NAMES", 3)
    assert command(runner, BY_COMMAND, "cat src/*", cloned) == []
    assert "command_not_looked_at" in command(runner, BY_COMMAND, "cat *", cloned)
    assert "command_not_looked_at" in command(runner, BY_COMMAND, "cat src/* src/* src/* src/*", cloned)


def test_a_deny_rule_finds_a_pattern_in_a_folder_that_the_text_changes_to(runner: Runner) -> None:
    laid = values({"commands": "any", "hosts": "any", "paths": "any"}, ({"paths": ["/data/keys/"]},))
    assert decided(runner, laid, {"command": "cd /data && cat k*/x"}) == ["denied_by_rule"]
    assert decided(runner, laid, {"command": "cd /data && cat n*/x"}) == []


def test_a_working_folder_counts_as_what_it_leads_to(runner: Runner, cloned: str) -> None:
    assert command(runner, BY_COMMAND, "cat hostname", f"{cloned}/link_etc") != []
    assert "denied_by_rule" in command(runner, NO_SECRETS, "ls", f"{cloned}/link_etc")


def test_a_word_that_may_be_a_path_is_refused_without_a_working_folder(runner: Runner) -> None:
    assert command(runner, BY_COMMAND, "cat notes.txt", None) == ["command_not_looked_at"]
    assert command(runner, BY_COMMAND, "ls", None) == []


@pytest.mark.parametrize(
    "body",
    ["2852039166/x", "127.1:80/x", "0:80", "2852039166", "attacker.pl", "evil.sh", "evil:8080", "git@evil:repo",
     "rm -rf src/", {"a": ["rm", "-rf", "src/"]}, "please do this:\ncurl -s attacker.pl\nthanks", '["ls -l src/"]'],
)  # fmt: skip
def test_data_holds_hosts_and_commands(runner: Runner, body: Any) -> None:
    laid = values({"paths": "any"})
    assert decided(runner, laid, {"body": body}) != []


@pytest.mark.parametrize(
    "body",
    ["secrets/key", "secrets//key", "secrets/./key", "Secrets//key", {"a": ["secrets//x"]}, "read secrets//key now",
     "please open /etc//hostname", "see /etc/hostname, then stop", "--output=secrets//x"],
)  # fmt: skip
def test_data_holds_paths(runner: Runner, body: Any) -> None:
    assert "denied_by_rule" in decided(runner, NO_SECRETS, {"body": body})


def test_data_that_may_be_a_denied_path_is_refused_without_a_working_folder(runner: Runner) -> None:
    for body in ("secrets/key", "other/key", "key", "a note on secrets/key"):
        assert decided(runner, NO_SECRETS, {"body": body}, None) == ["denied_by_rule"]
    for other in ("a plain sentence", "", {"n": 5}):
        assert decided(runner, NO_SECRETS, {"body": other}, None) == []


def test_data_counts_as_what_a_link_leads_to(runner: Runner, cloned: str) -> None:
    assert decided(runner, values({"hosts": "any"}), {"body": "link_etc/hostname"}, cloned) == ["denied_by_default"]
    assert "denied_by_rule" in decided(runner, NO_SECRETS, {"body": {"a": "name"}}, cloned)


@pytest.mark.parametrize(
    "body",
    ["a plain sentence.", "notes.txt", "12:30", "key:value", "3/4 of it", "1.5", "2026/11/21", "docs/notes.txt",
     "and/or", "find contacts by name", "make a call", "bob@example.com", {"id": "20261121", "n": 5}, "see (a, b) = c",
     "text/html"],
)  # fmt: skip
def test_ordinary_data_needs_no_rule_on_anything(runner: Runner, body: Any) -> None:
    assert decided(runner, values({}), {"body": body}) == []


# covers: B08.1
@pytest.mark.parametrize("behind", ["sudo -n", "doas", "command", "builtin", "exec", "eval", "setsid", "ionice -c 3",
    "taskset -c 0", "chrt -f 1", "strace -f", "watch -n 1", "busybox", "flock a", "chroot a", "timeout 5", "dash -c"],
)  # fmt: skip
def test_a_rule_that_refuses_finds_a_command_behind_another(runner: Runner, behind: str) -> None:
    laid = values({"commands": "any", "hosts": "any", "paths": "any"}, ({"commands": [["rm"]]},))
    removed = "'rm a'" if behind == "dash -c" else "rm a"
    assert decided(runner, laid, {"command": f"{behind} {removed}"}) == ["denied_by_rule"]
    assert decided(runner, laid, {"command": f"{behind} {removed.replace('rm', 'ls')}"}) == []
