"""`engine code`: a run from a file, its text and JSON, its exit codes, repairs, approvals, Ctrl-C, what was kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.files.artifact_store import ArtifactStore
from engine.cli import streams
from engine.cli.code.commands import OutputPrinter, written
from engine.errors import GatherError
from tests.api.serving import until
from tests.code.conftest import CODE, golden, printing
from tests.command import Command, lines
from tests.conftest import ROOT, lowered, take_over

GOLDEN = ROOT / "fixtures/code/incident_metrics.json"


@pytest.fixture
def command(tmp_path: Path, cache: Path, probed: Path) -> Command:
    """A user whose state has the results of the sandbox probe."""
    made = Command.of(tmp_path, cache)
    take_over(probed, made.state)
    return made


def write(folder: Path, document: Any) -> Path:
    path = folder / "ACTION.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


# covers: C79
def test_the_golden_action_gives_its_answer(command: Command) -> None:
    done = command("code", "run", GOLDEN)
    assert done.code == 0
    assert done.stdout.startswith("Code execution brief (US, 2026-03-07): incident inc_payments_20260307 is P1")
    assert "ran in: bubblewrap (restricted_process), no network: enforced" in done.stdout
    assert "running in the sandbox" in done.stderr
    (digest,) = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("  code: ")]
    assert command("code", "show", digest).stdout == CODE
    (listed,) = command("code", "runs", "--format", "json").json["runs"]
    assert (listed["stop_reason"], listed["result"]) == ("success", True)
    assert command("code", "runs", listed["id"]).json["answer"] == done.stdout.splitlines()[0]
    assert command("code", "runs").stdout.startswith(listed["id"])
    command("code", "runs", "another").refused("`engine code runs` lists what is known")
    (caller,) = {line["principal"] for line in lines(command.state) if line["kind"] == "decision"}
    assert caller


@pytest.mark.parametrize("file", [GOLDEN, ROOT / "fixtures/code/incident_metrics.py"], ids=["action", "program"])
def test_an_invalid_policy_is_what_stops_a_run(file: Path, command: Command, tmp_path: Path) -> None:
    values = tmp_path / "own/values"
    values.mkdir(parents=True)
    (values / "code.yaml").write_text("max_seconds: 1\n", encoding="utf-8")
    (tmp_path / "own/recipe.yaml").write_text("description: Ours\nowner: ana@example.org\n", encoding="utf-8")
    done = command("code", "run", file, "--policy", tmp_path / "own")
    assert (done.code, done.stdout.split("\n")[0]) == (5, "stopped in phase plan: engine_fault:engine.policy_invalid")
    assert "one execution may not take longer than a whole run" in done.stdout


def test_a_program_alone_is_run_with_its_input_and_contract(command: Command, tmp_path: Path) -> None:
    program = tmp_path / "verify.py"
    code = 'import json\nprint(json.dumps({"passed": json.loads(input())["n"] == 1}))\n'
    program.write_text(code, encoding="utf-8-sig")  # with the byte order mark of some editors
    (tmp_path / "payload.json").write_text('{"n": 1}', encoding="utf-8")
    done = command("code", "run", program, "--payload", tmp_path / "payload.json", "--contract", "verdict", "-q")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("The output was verified.")


@pytest.mark.full
def test_a_program_refused_by_its_profile_gets_a_remedy(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import csv\n", encoding="utf-8")
    done = command("code", "run", tmp_path / "p.py")
    assert done.code == 1
    assert "name a profile with an advisory scan" in done.stdout
    for twice in (("-i", tmp_path / "p.py", "-i", tmp_path / "p.py"), ("--env", "science")):
        assert command("code", "run", tmp_path / "p.py", *twice).code != 0


@pytest.mark.full
def test_a_refusal_for_a_limit_names_the_limit_and_what_was_found(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print(1)\n", encoding="utf-8")
    for number in range(17):
        (tmp_path / f"{number}.csv").write_text("x", encoding="utf-8")
    files = [word for number in range(17) for word in ("-i", tmp_path / f"{number}.csv")]
    done = command("code", "run", tmp_path / "p.py", *files)
    assert (done.code, "input_files_exceeded" in done.stdout) == (1, True)
    assert "found: files 17 (17 bytes)\n" in done.stdout
    assert re.search(r'policy: code\.inputs = \{"bytes": \d+, "files": 16\} \(.*policy/code\.yaml:\d+', done.stdout)


@pytest.mark.full
def test_a_program_that_fails_is_told_how_it_ended(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    assert "found: ended runtime_error\n" in command("code", "run", tmp_path / "p.py").stdout


@pytest.mark.full
def test_a_refusal_for_too_much_output_names_the_limit_of_its_contract(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print('x' * 65536)\n", encoding="utf-8")
    done = command("code", "run", tmp_path / "p.py")
    assert "stopped in phase execute: code_output_too_large" in done.stderr
    assert re.search(
        r'policy: code\.contracts\.printed\.text = \{.*"stdout_bytes": 65536\} \(.*code\.yaml:', done.stderr
    )


# covers: C45 C46
@pytest.mark.full
def test_json_is_the_whole_result_and_nothing_else(command: Command) -> None:
    done = command("code", "run", "-", "--format", "json", stdin=GOLDEN.read_bytes())
    assert (done.code, done.stderr) == (0, "")
    assert done.json["aggregate"]["metrics"]["sample_size"] == 60


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        (golden("import os"), 1, "policy_block:static_policy_violation:import_not_allowed:os"),
        (golden(printing(sample_size=0)), 1, "invalid_code_output:sample_size"),
        (golden(budget=1), 2, "invalid_request:unreadable"),
        ("{", 2, "invalid_request:unreadable"),
        ('{"action": {"code": NaN}}', 2, "invalid_request:unreadable"),
        ('{"action": 1, "action": 2}', 2, "invalid_request:unreadable"),
        ("[" * 200 + "]" * 200, 2, "invalid_request:unreadable"),
    ],
    ids=["import", "output", "field", "half", "nan", "twice", "deep"],
)
def test_a_refused_document_is_recorded_and_its_reason_printed(
    command: Command, tmp_path: Path, document: Any, code: int, said: str
) -> None:
    done = command("code", "run", write(tmp_path, document))
    assert done.code == code
    assert said in done.stdout
    assert lines(command.state)


@pytest.mark.full
def test_a_file_that_is_not_there_is_a_recorded_refusal(command: Command, tmp_path: Path) -> None:
    done = command("code", "run", tmp_path / "nothing.json")
    assert (done.code, "invalid_request:unreadable" in done.stdout) == (2, True)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("name", "text"), [("a.js", "console.log(1)"), ("program", "import json\nprint(1)"), ("a", "[]")]
)
def test_a_program_without_its_suffix_is_refused_with_a_hint(
    command: Command, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = command("code", "run", tmp_path / name)
    assert done.code == 2
    assert "is not a JSON object" in done.stdout
    assert "a Python program whose name ends in .py" in done.stdout


# covers: C63
@pytest.mark.full
def test_a_repair_program_gets_the_rejection_and_gives_the_next_action(command: Command, tmp_path: Path) -> None:
    program = tmp_path / "repair program.py"
    program.write_text(
        "import json, sys\n"
        "told = json.load(sys.stdin)\n"
        f"action = json.load(open({str(GOLDEN)!r}))['action']\n"
        f"open({str(tmp_path / 'told')!r}, 'a').write(told['stop_reason'] + '\\n')\n"
        "print(json.dumps(action))\n",
        encoding="utf-8",
    )
    path = write(tmp_path, golden("import os\n" + CODE))
    done = command("code", "run", path, "--repair", f"{sys.executable} '{program}'")
    assert done.code == 0
    assert "attempts: policy_block:static_policy_violation:import_not_allowed:os, success" in done.stdout
    assert (tmp_path / "told").read_text().split() == ["policy_block:static_policy_violation:import_not_allowed:os"]


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("false", "ended with 1"),
        ("/no/such/program", "cannot be run"),
        ("'", "cannot be split"),
        ("", "is empty"),
        ("echo {", "is not JSON"),
        ("sleep 60", "took more than"),
    ],
)
def test_a_repair_program_that_gives_no_action_says_so(
    command: Command, tmp_path: Path, program: str, said: str
) -> None:
    path = write(tmp_path, golden("import os"))
    command("code", "run", path, "--repair", program, "--repair-seconds", "0.5").refused(said)


def test_an_idempotency_key_is_refused_for_a_repair_loop(command: Command) -> None:
    command("code", "run", GOLDEN, "--repair", "true", "--idempotency-key", "once").refused("is for one run")


@pytest.mark.full
def test_a_repair_program_with_endless_output_is_killed(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path, golden("import os"))
    command("code", "run", path, "--repair", "yes", "--repair-seconds", "60").refused("it printed more than")


@pytest.mark.full
def test_a_repair_program_that_says_nothing_ends_the_loop(command: Command, tmp_path: Path) -> None:
    done = command("code", "run", write(tmp_path, golden("import os")), "--repair", "true")
    assert done.code == 1


@pytest.mark.full
def test_a_confirm_prints_the_approval_option_for_the_next_run(command: Command, policy: Path, tmp_path: Path) -> None:
    levels = policy / "levels.yaml"
    added = f"  code_scan: {{import_not_allowed: {lowered('warn')}}}\n"
    added += f"  code_execution: {{static_policy_violation: {lowered('confirm')}}}\n"
    levels.write_text(levels.read_text().replace("levels:\n", f"levels:\n{added}", 1), encoding="utf-8")
    path = write(tmp_path, golden("import abc\n" + CODE))
    asked = command("code", "run", path, "--policy", policy, "--principal", "pipeline")
    assert asked.code == 3
    (option,) = [word for word in asked.stdout.split() if word.startswith("code_execution=")]
    assert command("approvals", "grant", option.partition("=")[2]).code == 0
    done = command("code", "run", path, "--policy", policy, "--principal", "pipeline", "--approval", option)
    assert done.code == 0, done.stdout
    assert command("code", "run", path, "--approval", "wrong").code == 2


@pytest.mark.full
def test_a_repeated_idempotency_key_replays_the_result(command: Command) -> None:
    first, again = (command("code", "run", GOLDEN, "--idempotency-key", "k-1") for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert "replayed" in again.stdout
    assert "running in the sandbox" not in again.stderr


@pytest.mark.full
def test_ctrl_c_kills_the_sandbox_and_the_run_is_recorded_as_cancelled(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path, golden("while True: pass", policy_hints={"exec_timeout_seconds": 20}))
    said = tmp_path / "stderr"
    with (
        said.open("wb") as file,
        subprocess.Popen(
            command.argv("code", "run", path),
            cwd=ROOT,
            env=command.environment(),
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        ) as process,
    ):
        try:
            until(lambda: "running in the sandbox" in said.read_text())
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped in phase execute: cancelled" in out
    found = [line["status"] for line in lines(command.state) if line["kind"] == "result"]
    assert found == ["cancelled", "run_stopped"]


def test_an_unknown_digest_is_reported_as_not_stored(command: Command) -> None:
    for unknown in ("sha256:" + "0" * 64, "x", "../../etc/passwd"):
        command("code", "show", unknown).refused("nothing is stored under")


@pytest.mark.threat("injection")
@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "linked/new/a.txt", "file/a.txt"])
def test_files_of_a_program_are_not_written_to_hooks_or_through_links(path: str, tmp_path: Path) -> None:
    into, outside = tmp_path / "into", tmp_path / "outside"
    into.mkdir()
    outside.mkdir()
    (into / "linked").symlink_to(outside)
    (into / "file").write_text("mine")
    store = ArtifactStore(tmp_path / "artifacts")
    artifacts = [{"path": name, "stored": store.put(b"out", 0, 1)} for name in ("plain/a.txt", path)]
    with pytest.raises(GatherError, match=re.escape(f"`{path}` cannot be written")):
        written({"artifacts": artifacts}, into, store)
    assert sorted(one.relative_to(tmp_path).as_posix() for one in outside.rglob("*")) == []
    assert sorted(one.name for one in into.iterdir()) == ["file", "linked", "plain"]
    assert written({"artifacts": artifacts[:1]}, tmp_path / "new", store)
    assert (tmp_path / "new" / "plain" / "a.txt").read_bytes() == b"out"


def test_a_program_that_leaves_no_file_is_told_where_to_write_them(tmp_path: Path) -> None:
    (line,) = written({}, tmp_path / "out", ArtifactStore(tmp_path / "store"))
    assert "the program left no file in artifacts/" in line
    assert not (tmp_path / "out").exists()


def test_a_closed_output_pipe_does_not_fail_printing_program_output(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", streams._text(stream, streams._Results))
        shown = OutputPrinter()
        shown.take("stdout", b"one\n")
        shown.close()
        with Path(os.devnull).open("wb") as nowhere:  # where the line goes at last
            os.dup2(nowhere.fileno(), write)
        sys.stdout.close()
