"""`engine sandbox run`: decided, run in a sandbox, recorded; and nothing where it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Command, lines
from tests.facilities import needs

ORIGIN = ("--origin", "user", "--origin-name", "session-3")
REFUSED = {
    "executable_not_allowlisted": ["--profile", "standard", "--", "sh", "-c", "id"],
    "profile_unknown": ["--profile", "lenient", "--", "cat"],
    "limits_loosened": ["--profile", "standard", "--tighten", "processes=99", "--", "cat"],
}


def test_a_refusal_names_the_row_that_a_misspelled_name_could_mean(command: Command) -> None:
    done = command("sandbox", "run", "--profile", "standrad", "--", "cat")
    assert (
        "\n  found: sandbox.profiles.standrad is not a row of the policy, did you mean `standard`?\n  N" in done.stderr
    )
    done = command("memory", "put", "-", "--sensitivity", "intrenal", *ORIGIN, stdin="hello")
    assert "did you mean `internal`?" in done.stderr


# covers: B11 C80
@pytest.mark.full
def test_a_denied_program_is_reported_and_not_run(command: Command) -> None:
    for code, words in REFUSED.items():
        done = command("sandbox", "run", *words)
        done.refused(code, code=1)
        assert "nothing was run: deny" in done.stderr


@pytest.mark.full(after=1)
@pytest.mark.parametrize("text", ["processes", "processes=few", "=1e"])
def test_a_limit_is_a_name_and_a_number(command: Command, text: str) -> None:
    assert command("sandbox", "run", "--profile", "standard", "--tighten", text, "--", "cat").code == 2


# covers: B11 C81
@pytest.mark.full
@needs("bubblewrap")
def test_a_program_runs_and_its_enforced_boundaries_are_recorded(command: Command, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"one\ntwo\n")
    done = command("sandbox", "run", "--profile", "standard", "-i", given, "--", "head", "-n", "1")
    assert (done.code, done.stdout) == (0, "one\n"), done.stderr
    assert "ok, exit code 0: standard on bubblewrap (restricted_process)" in done.stderr
    (result,) = [one for one in lines(command.state) if one.get("status") == "ok"]
    assert result["facts"]["network"] == "enforced"
    failed = command("sandbox", "run", "--profile", "standard", "--", "cat", "/etc/passwd")
    assert (failed.code, failed.stdout) == (1, "")


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a program or --shell TEXT"),
        (("--shell", "id", "--", "cat"), "name a program or --shell TEXT"),
        (("--host", "example.com", "--", "cat"), "only a --shell command has connections"),
        (("--shell", "id", "--tighten", "processes=2"), "takes neither --input nor --tighten"),
        (("--shell", "id", "-i", "/dev/null"), "takes neither --input nor --tighten"),
    ],
    ids=["nothing", "both", "host", "tighten", "input"],
)
def test_options_that_do_not_fit_are_refused(command: Command, words: tuple[str, ...], said: str) -> None:
    done = command("sandbox", "run", "--profile", "shell", *words)
    assert (done.code, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.replace("\u2502", " ").split())


# covers: B11
@pytest.mark.full
@needs("bubblewrap")
def test_a_shell_command_runs_as_agents_run_it(command: Command) -> None:
    """It has pipes and a folder that is empty but for `artifacts`, and its connections are decided on and printed."""
    ask = r"printf 'CONNECT example.com:443 HTTP/1.1\r\n\r\n' >&3"
    connect = rf"exec 3<>/dev/tcp/127.0.0.1/3128 && {ask} && head -n 1 <&3 | tr -d '\r'"
    text = f"ls | cat && {connect}"
    done = command("sandbox", "run", "--profile", "shell", "--shell", text, "--host", "example.com")
    assert (done.code, done.stdout) == (0, "artifacts\nHTTP/1.1 403 host_not_allowlisted\n"), done.stderr
    assert "ok, exit code 0: shell on bubblewrap_egress (restricted_process)" in done.stderr
    assert "connection to https://example.com/: refused (host_not_allowlisted)" in done.stderr
    assert "  host_not_allowlisted: Name exactly the host" in done.stderr
    assert [line["point"] for line in lines(command.state) if line["kind"] == "decision"] == ["sandbox", "network"]
    refused = command("sandbox", "run", "--profile", "standard", "--shell", "id")
    refused.refused("shell_not_permitted", code=1)
