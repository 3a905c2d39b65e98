"""Ordinary programs run as they were written: under the profile `analysis`, and nothing hostile gets further there."""

from __future__ import annotations

import base64
import json
import re
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.sandbox import packages
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.run.user import sandbox_user
from engine import CodeRun
from engine.code.running import RunWatcher
from engine.documents.files import load
from engine.settings import ReadLimits
from tests.adapters.sandbox.hostile import test_hostile
from tests.adapters.sandbox.hostile.canaries import as_told, host, marked
from tests.code.conftest import Bench, opened
from tests.conftest import ROOT
from tests.facilities import needs
from tests.lanes import lane
from tests.processes import alive

pytestmark = needs("bubblewrap")

_MOST = 1_000_000
"""A hint that the policy lowers to its own limit."""

_LOCK = ROOT / "fixtures" / "ordinary" / "packages.lock"


def _programs(*, installed: bool) -> dict[str, dict[str, Any]]:
    found = {}
    for file in sorted((ROOT / "fixtures" / "ordinary").glob("*.yaml")):
        for one in load(file.read_bytes(), file.name, ReadLimits()).value:
            if bool(one.get("packages")) == installed:
                found[f"{file.stem}-{one['name']}"] = one
    return found


PLAIN, INSTALLED = _programs(installed=False), _programs(installed=True)


def asked(one: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A run of a program as a caller requests it."""
    code = {"id": "c1", "language": "python", "entrypoint": "main.py", "code": one["program"]}
    files = {name: base64.b64encode(text.encode()).decode() for name, text in one.get("files", {}).items()}
    return {
        "action": {**code, "input_payload": one.get("input", {})},
        "request": {},
        "policy_hints": {"max_code_chars": _MOST, "exec_timeout_seconds": _MOST},
        "contract": "printed",
        "artifacts": True,
        **({"files": files} if files else {}),
        **more,
    }


def as_written(one: dict[str, Any], done: CodeRun) -> None:
    """The program printed what it prints anywhere else, and left the files that it names."""
    assert done.ok, json.dumps(done.document, indent=1)
    assert done.document["output"]["stdout"] == one["prints"]
    assert [file["path"] for file in done.document["artifacts"]] == sorted(one.get("leaves", []))
    assert "artifacts_not_kept" not in done.document


def test_the_corpus_has_a_hundred_and_twenty_programs() -> None:
    assert len(PLAIN) + len(INSTALLED) == 120


@pytest.mark.parametrize("name", lane(PLAIN, lambda name: [name.partition("-")[0]]))
def test_a_program_runs_as_written(name: str, bench: Bench) -> None:
    as_written(PLAIN[name], bench.run(asked(PLAIN[name], profile="analysis")))


def test_findings_of_an_advisory_scan_are_returned_and_recorded(bench: Bench) -> None:
    one = PLAIN["text-text_that_looks_like_a_path"]
    done = bench.run(asked(one, profile="analysis"))
    assert {"code": "literal_not_allowed", "subject": "literals/path"} in done.document["scan_advice"]
    limits = {line["point"]: line["limits"] for line in bench.recorded(done) if line.get("limits")}
    assert limits["code_execution"]["scan"] == "advisory"
    assert bench.run(asked(one)).stop_reason.startswith("policy_block:static_policy_violation")


def test_secrets_are_removed_from_printed_text(bench: Bench) -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLF"
    done = bench.run(asked({"program": f"print('one {key} two')"}, profile="analysis"))
    assert done.ok
    assert key not in json.dumps(done.document)
    assert key.encode() not in bench.kept(done.document["stored"]["result"])


def test_output_is_shown_while_the_program_runs(bench: Bench) -> None:
    pieces: list[tuple[str, bytes]] = []
    program = {"program": "import sys\nprint('out')\nprint('err', file=sys.stderr)"}
    watch = RunWatcher(on_output=lambda stream, data: pieces.append((stream, data)))
    assert bench.run(asked(program, profile="analysis"), watch=watch).ok
    assert sorted(pieces) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    pieces.clear()
    bench.run(asked(program, profile="analysis", contract="incident_metrics"), watch=watch)
    assert pieces == []  # what a contract checks is shown after that


def test_a_failed_program_returns_what_it_printed_and_the_end_of_its_traceback(bench: Bench) -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLF"
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(9))
    program = {"program": f"{chain}def f9(x):\n    raise ValueError('row 7 is empty')\nprint('half {key}')\nf0(1)\n"}
    done = bench.run(asked(program, profile="analysis"))
    assert done.stop_reason == "code_runtime_error:1"
    (step,) = [step for step in done.document["trace"] if step["phase"] == "execute_code"]
    assert step["stderr_snippet"].endswith("ValueError: row 7 is empty")
    assert done.document["output"]["stdout"].startswith("half [redacted:")
    assert done.document["output"]["stderr"].startswith("Traceback")
    assert done.document["output"]["stderr"].endswith("ValueError: row 7 is empty\n")
    assert key not in json.dumps(done.document)
    assert "output" not in bench.run(asked(program, profile="analysis", contract="incident_metrics")).document


def test_a_program_that_was_stopped_returns_what_it_had_printed_but_no_half_word(bench: Bench) -> None:
    late = asked({"program": "print('started', flush=True)\nwhile True: pass"}, profile="analysis")
    late["policy_hints"]["exec_timeout_seconds"] = 1
    assert bench.run(late).document["output"]["stdout"] == "started\n"
    flood = bench.run(asked({"program": "while True: print('whole')"}, profile="analysis")).document
    assert flood["stop_reason"] == "code_output_too_large"
    assert set(flood["output"]["stdout"].split()) == {"whole"}


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_a_program_may_end_itself_with_the_words_of_site(word: str, bench: Bench) -> None:
    assert bench.run(asked({"program": f"print(1)\n{word}()\nprint(2)"}, profile="analysis")).document["output"] == {
        "stdout": "1\n",
        "stderr": "",
    }
    done = bench.run(asked({"program": f"{word}('no rows')"}, profile="analysis"))
    assert done.document["output"]["stderr"] == "no rows\n"


def test_files_are_given_read_only_and_by_name_alone(bench: Bench) -> None:
    program = "import os\nprint(open('inputs/a b.txt').read(), oct(os.stat('inputs/a b.txt').st_mode & 0o777))"
    done = bench.run(asked({"program": program, "files": {"a b.txt": "text"}}, profile="analysis"))
    assert done.document["output"]["stdout"] == "text 0o400\n"
    for name in ("../x", "a/b", ".hidden", "", "a\nb"):
        refused = bench.run(asked({"program": "print(1)", "files": {name: "x"}}, profile="analysis"))
        assert refused.stop_reason == "invalid_request:unreadable", name


@pytest.mark.parametrize("data", ["!!", "aGk==", "aGk=aGk=", "=", "hello", "a-_="])
def test_an_invalid_base64_file_is_refused_as_a_whole(data: str, bench: Bench) -> None:
    request = asked({"program": "print(1)"}, profile="analysis", files={"a": data})
    refused = bench.run(request)
    assert refused.stop_reason == "invalid_request:unreadable"
    assert "`files.a` must be base64" in json.dumps(refused.document)


def test_base64_may_be_broken_into_lines(bench: Bench) -> None:
    files = {"a": base64.encodebytes(b"x" * 100).decode()}
    done = bench.run(asked({"program": "print(len(open('inputs/a').read()))"}, profile="analysis", files=files))
    assert done.document["output"]["stdout"] == "100\n"


def test_the_path_of_the_working_folder_is_not_taken_for_a_secret(bench: Bench) -> None:
    program = "import os\nprint(os.path.abspath('inputs/sales-2026-q3.csv'))"
    for _ in range(3):
        done = bench.run(asked({"program": program}, profile="analysis"))
        assert re.fullmatch(
            r"/work/code_exec_agent_[a-z]+/inputs/sales-2026-q3\.csv\n", done.document["output"]["stdout"]
        )


def test_kept_files_are_inlined_on_request(bench: Bench) -> None:
    program = {"program": "open('artifacts/a.bin', 'wb').write(bytes(range(256)))"}
    (kept,) = bench.run(asked(program, profile="analysis", inline_artifacts=True)).document["artifacts"]
    assert base64.b64decode(kept["content"]) == bytes(range(256)) == bench.kept(kept["stored"])
    (kept,) = bench.run(asked(program, profile="analysis")).document["artifacts"]
    assert "content" not in kept


def test_the_request_of_the_docs_runs_and_returns_the_file_that_its_program_leaves(bench: Bench) -> None:
    page = (ROOT / "docs/code.md").read_text(encoding="utf-8")
    request = json.loads(page.partition("> run.json <<'END'\n")[2].partition("\nEND\n")[0])
    done = bench.run(request).document
    assert (done["status"], done["output"]) == ("ok", {"stdout": "6\n", "stderr": ""})
    assert base64.b64decode(done["artifacts"][0]["content"]) == b"HELLO\n"
    assert bench.run({**request, "artifacts": False}).document["status"] == "stopped"


def test_an_unadmitted_package_environment_is_refused(bench: Bench) -> None:
    done = bench.run(asked({"program": "print(1)"}, packages="analysis"))
    assert (done.document["phase"], done.exit) == ("policy_check", 1)
    assert done.document["findings"][0]["code"] in {"packages_unknown", "profile_unknown"}


@pytest.fixture(scope="module")
def tree() -> Iterator[tuple[Path, packages.Packages]]:
    """The packages of the programs, from what pip can get, where sandboxes can enter."""
    with tempfile.TemporaryDirectory(prefix="packages-", dir=None if sandbox_user().own else "/var/tmp") as folder:  # noqa: S108
        cache = Path(folder) / "admission-engine"
        cache.parent.chmod(0o755)
        yield cache, packages.build("analysis", _LOCK, cache / "packages")


@pytest.mark.full
@needs("package_index")
def test_programs_with_packages_run_as_written(
    tree: tuple[Path, packages.Packages], probed: Path, tmp_path: Path
) -> None:
    place, built = tree
    assert {"numpy", "pandas", "matplotlib", "scipy"} <= set(built.modules)
    row = f'sandbox.packages.analysis={{tree: "{built.tree}", profile: analysis}}'
    slow = ("code.max_seconds=300", "code.hints.exec_timeout_seconds.maximum=60.0")
    with opened(probed, tmp_path / "state", place, values=(row, *slow)) as bench:
        failed = {}
        for name, one in INSTALLED.items():
            try:
                as_written(one, bench.run(asked(one, packages="analysis")))
            except AssertionError as error:
                failed[name] = str(error)
        assert failed == {}


@dataclass
class Watched:
    """A sandbox that remembers how its last program ended; `told` replaces its input and variables."""

    own: Any
    stdin: bytes = b""
    variables: tuple[tuple[str, str], ...] = ()
    last: RunResult | None = None

    @property
    def name(self) -> str:
        return str(self.own.name)

    def run(self, program: Program, bounds: Bounds, cancel: Any = None) -> RunResult:
        program = replace(program, stdin=self.stdin, environment={**program.environment, **dict(self.variables)})
        self.last = self.own.run(program, bounds, cancel)
        return self.last

    def available(self) -> str | None:
        return self.own.available()  # type: ignore[no-any-return]

    def machine(self) -> str:
        return str(self.own.machine())


_SECONDS = 60.0
"""What the profile gives a program at most; a request may only lower it."""

_HOSTILE = {name: one for name, one in test_hostile._ALL.items() if one.language == "python"}


@pytest.mark.full(after=4)
@needs("x86_64")
@pytest.mark.parametrize("name", lane(sorted(_HOSTILE), test_hostile._kind))
def test_a_hostile_program_is_contained_without_the_scan(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile, token = _HOSTILE[name], f"run-{secrets.token_hex(8)}"
    own = bench.engine.executors.machine()
    watched = Watched(own.backend("bubblewrap"), variables=(("RUN", token),))
    monkeypatch.setattr(bench.engine.executors, "_machine", replace(own, backend=lambda _: watched))
    bounds = test_hostile._bounds(hostile)
    bounds = replace(bounds, wall_seconds=min(bounds.wall_seconds, _SECONDS))
    with host() as canaries:
        for variable, value in canaries.variables().items():
            monkeypatch.setenv(variable, value)
        watched.stdin = as_told({**canaries.told, "outside": False, **hostile.inside})
        before, _ = canaries.state(), canaries.reached()
        leaves = bounds.artifact_files > 0
        asks = asked({"program": hostile.text}, profile="analysis", tighten=asdict(bounds), artifacts=leaves)
        done = bench.run(asks)
        ended = watched.last
        assert ended is not None, json.dumps(done.document, indent=1)
        assert not [pid for pid in marked(token) if alive(pid)]
        said = ended.stdout + ended.stderr + b"".join(one.data for one in ended.artifacts)
        assert b"HARM" not in ended.stdout + ended.stderr, said
        assert canaries.mark.encode() not in said
        assert ended.status in hostile.status, ended
        assert canaries.reached() == 0
        assert canaries.state() == before
