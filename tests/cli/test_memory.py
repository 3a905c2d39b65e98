"""`engine memory`: what it stores, for whom, and what a person must approve."""

from __future__ import annotations

from pathlib import Path

from tests.command import Command

OF_USER = ("--origin", "user", "--origin-name", "session-3", "--sensitivity", "internal")
OF_TOOL = ("--origin", "website", "--origin-name", "example.org", "--sensitivity", "internal")
OWN = ("--principal", "agent-7")


def test_an_entry_is_written_read_and_forgotten_by_its_owner_alone(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "entry.txt"
    file.write_text("The user likes tea.\nAnd \x1b[31mred.\n", encoding="utf-8")
    put = command("memory", "put", str(file), *OF_USER, *OWN)
    id_ = put.stdout.strip()
    assert (put.code, len(id_)) == (0, 32)
    assert command("memory", "get", id_, *OWN).stdout == "The user likes tea.\nAnd ?[31mred.\n"
    listed = command("memory", "list", *OWN, "--format", "json").json
    assert [(one["id"], one["origin_name"]) for one in listed["entries"]] == [(id_, "session-3")]
    other = command("memory", "get", id_, "--principal", "agent-8")
    assert (other.code, other.stdout, "memory_of_another_owner" in other.stderr) == (1, "", True)
    assert command("memory", "forget", id_, *OWN).stdout == f"forgotten: {id_}\n"
    assert command("memory", "list", *OWN).stdout == "no entries\n"


def test_an_entry_from_outside_waits_for_a_person_and_a_secret_is_refused(command: Command, tmp_path: Path) -> None:
    file, secret = tmp_path / "entry.txt", tmp_path / "secret.txt"
    file.write_text("Tea is best at 80 degrees.", encoding="utf-8")
    waiting = command("memory", "put", str(file), *OF_TOOL, *OWN)
    assert (waiting.code, waiting.stdout.partition(" approval ")[0]) == (3, "waiting for")
    (asked,) = command("approvals", "list", "--format", "json").json["approvals"]
    assert f"to approve it: engine approvals grant {asked['id']}\n" in waiting.stdout
    assert command("approvals", "grant", asked["id"]).code == 0
    put = command("memory", "put", str(file), *OF_TOOL, *OWN, "--approval", asked["id"])
    assert (put.code, command("memory", "get", put.stdout.strip(), *OWN).stdout) == (0, "Tea is best at 80 degrees.\n")
    secret.write_text("token ghp_" + "a1B2" * 9, encoding="utf-8")
    refused = command("memory", "put", str(secret), *OF_USER, *OWN)
    assert (refused.code, refused.stdout, "a1B2" in refused.stderr) == (1, "", False)
    assert "found: in the text" in refused.stderr
    secret.write_bytes(b"\xff")
    command("memory", "put", str(secret), *OF_USER, *OWN).refused("the entry is not UTF-8 text")


def test_a_refusal_names_the_lines_and_shows_nothing_of_them(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "entry.txt"
    for text, name, found in (
        ("a\nkey AKIAIOSFODNN7EXAMPLF\nb\nAKIAIOSFODNN7EXAMPLF", "x", "found: in lines 2, 4 of the text\n"),
        ("a", "AKIAIOSFODNN7EXAMPLF", "found: in the name of the origin\n"),
        (
            "a\nAKIAIOSFODNN7EXAMPLF",
            "AKIAIOSFODNN7EXAMPLF",
            "found: in line 2 of the text, in the name of the origin\n",
        ),
        ("a\n\nb\u200bc", "x", "found: in line 3 of the text\n"),
        ("a\nwrite to jane@mail.example.org", "x", "found: in line 2 of the text\n"),
    ):
        file.write_text(text, encoding="utf-8")
        options = ("--origin", "user", "--origin-name", name, "--sensitivity", "internal")
        refused = command("memory", "put", str(file), *options, *OWN)
        assert (refused.code in {1, 3}, found in refused.stderr + refused.stdout) == (True, True), refused
        assert "AKIAIO" not in refused.stderr
