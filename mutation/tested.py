"""Judges mutants of Python: by the tests that run the changed line, the cheapest files of tests first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TextIO

from mutation.model import ROOT, WORK, Results, Verdict, digest
from mutation.python import PythonMutant
from mutation.warm import COLD, KILLED

TESTS: Mapping[str, tuple[str, ...]] = {
    "engine/facts": ("tests/facts",),
    "engine/facts/tools": (
        "tests/facts/test_arguments.py",
        "tests/facts/test_commands.py",
        "tests/facts/test_destinations.py",
        "tests/facts/test_mcp_names.py",
        "tests/facts/test_proposals.py",
        "tests/facts/test_schemas.py",
        "tests/facts/test_tool_*.py",
        "tests/points/test_tool_*.py",
    ),
    "engine/fetching.py": ("tests/sources", "tests/api/test_fetch.py"),
    "engine/opa": ("tests/opa",),
    "engine/opa/build.py": ("tests/packaging/test_build.py",),
    "engine/opa/command.py": ("tests/policy_bundle/test_command.py",),
    "engine/opa/packed.py": ("tests/policy_bundle/test_packed.py",),
    "engine/opa/sharing.py": ("tests/opa/test_sharing.py", "tests/path/test_drive.py"),
    "engine/record": ("tests/record",),
    "engine/state/database.py": ("tests/state/test_database.py", "tests/state/test_upgrade.py"),
    "engine/secrets": ("tests/secrets",),
    "engine/sources": ("tests/sources", "tests/facts/test_source_bundle.py"),
    "engine/state": ("tests/state",),
    "adapters/admission_adapters/sandbox": (
        "tests/adapters/sandbox",
        "tests/sandboxes",
    ),
    "adapters/admission_adapters/sandbox/bubblewrap/arguments.py": ("tests/adapters/sandbox/test_arguments.py",),
    "adapters/admission_adapters/sandbox/run/cgroup.py": (
        "tests/adapters/sandbox/test_cgroup.py",
        "tests/adapters/sandbox/test_limits.py",
    ),
    "adapters/admission_adapters/sandbox/command.py": ("tests/adapters/sandbox/test_executors.py",),
    "adapters/admission_adapters/sandbox/run/proc.py": ("tests/adapters/sandbox/test_proc.py",),
    "adapters/admission_adapters/sandbox/executor.py": ("tests/adapters/sandbox/test_executors.py",),
    "adapters/admission_adapters/sandbox/run/handshake.py": ("tests/adapters/sandbox/test_handshake.py",),
    "adapters/admission_adapters/sandbox/launcher/launch.py": ("tests/adapters/sandbox/test_launcher.py",),
    "adapters/admission_adapters/sandbox/machine.py": (
        "tests/adapters/sandbox/test_machine.py",
        "tests/adapters/sandbox/test_root_and_user.py",
    ),
    "adapters/admission_adapters/sandbox/run/recipe.py": ("tests/adapters/sandbox/test_launcher.py",),
    "adapters/admission_adapters/sandbox/run/outcome.py": ("tests/adapters/sandbox/test_outcome.py",),
    "adapters/admission_adapters/sandbox/run/pool.py": ("tests/adapters/sandbox/test_pool.py",),
    "adapters/admission_adapters/sandbox/run/process.py": ("tests/adapters/sandbox/test_kill.py",),
    "adapters/admission_adapters/sandbox/run/report.py": ("tests/adapters/sandbox/test_artifacts.py",),
    "adapters/admission_adapters/sandbox/bubblewrap/seccomp.py": ("tests/adapters/sandbox/test_seccomp.py",),
    "adapters/admission_adapters/sandbox/run/start.py": (
        "tests/adapters/sandbox/test_start.py",
        "tests/adapters/sandbox/test_kill.py",
        "tests/adapters/sandbox/test_root_and_user.py",
    ),
    "adapters/admission_adapters/sandbox/bubblewrap/syscalls.py": ("tests/adapters/sandbox/test_seccomp.py",),
    # A mutant of user.py may end every process of the machine where a sandbox is started: its tests start none.
    "adapters/admission_adapters/sandbox/bubblewrap/probe.py": ("tests/adapters/sandbox/test_probe.py",),
    "adapters/admission_adapters/sandbox/run/user.py": ("tests/adapters/sandbox/test_user.py",),
    "adapters/admission_adapters/sandbox/run/watch.py": ("tests/adapters/sandbox/test_watch.py",),
    "adapters/admission_adapters/sandbox/gvisor/backend.py": ("tests/adapters/sandbox/test_gvisor.py",),
    "adapters/admission_adapters/sandbox/gvisor/binary.py": ("tests/adapters/sandbox/test_install.py",),
    "adapters/admission_adapters/sandbox/gvisor/probe.py": (
        "tests/adapters/sandbox/test_gvisor_probe.py",
        "tests/adapters/sandbox/test_gvisor.py",
    ),
    "adapters/admission_adapters/sandbox/wasm/backend.py": ("tests/adapters/sandbox/test_wasm.py",),
    "adapters/admission_adapters/sandbox/wasm/acts.py": ("tests/adapters/sandbox/test_wasm_acts.py",),
    "adapters/admission_adapters/sandbox/wasm/child.py": (
        "tests/adapters/sandbox/test_wasm.py",
        "tests/adapters/sandbox/test_wasm_child.py",
        "tests/adapters/sandbox/test_wasm_probe.py",
    ),
    "adapters/admission_adapters/sandbox/wasm/modules.py": ("tests/adapters/sandbox/test_wasm.py",),
    "adapters/admission_adapters/sandbox/wasm/probe.py": ("tests/adapters/sandbox/test_wasm_probe.py",),
    "adapters/admission_adapters/sandbox/probe": (
        "tests/adapters/sandbox/test_probe.py",
        "tests/adapters/sandbox/test_probe_acts.py",
        "tests/adapters/sandbox/test_probe_parts.py",
    ),
    "adapters/admission_adapters/tools": (
        "tests/adapters/test_mcp_proxy.py",
        "tests/adapters/test_prompt_view.py",
        "tests/adapters/test_tool_registry.py",
        "tests/adapters/test_tool_run.py",
        "tests/adapters/test_tool_results.py",
        "tests/adapters/test_tools.py",
        "tests/frameworks",
        "tests/sandboxes/test_sandbox_shell.py",
        "tests/sources/test_http_get.py",
    ),
    "adapters/admission_adapters/environments": ("tests/environments",),
    "adapters/admission_adapters/episodes": ("tests/episodes",),
    "adapters/admission_adapters/connecting.py": ("tests/sources",),
    "adapters/admission_adapters/fetch.py": ("tests/sources", "tests/llm/test_remote_model.py"),
    "adapters/admission_adapters/files": (
        "tests/adapters/test_artifact_store.py",
        "tests/adapters/test_artifacts.py",
        "tests/adapters/test_skills.py",
        "tests/environments/test_build.py",
        "tests/exporting",
        "tests/sources/test_fetch.py",
        "tests/sources/test_new_folder.py",
    ),
    "adapters/admission_adapters/frameworks": ("tests/frameworks",),
    "adapters/admission_adapters/llm.py": ("tests/llm",),
    "adapters/admission_adapters/llm_answer.py": ("tests/llm",),
    "adapters/admission_adapters/llm_provider.py": ("tests/llm",),
    "adapters/admission_adapters/runner": (
        "tests/adapters/test_*.py",
        "tests/runner",
        "tests/path/test_runner_errors.py",
    ),
    "adapters/admission_adapters/tunnels": ("tests/adapters/test_tunnels.py", "tests/sandboxes/test_proxy.py"),
    "adapters": ("tests/adapters/test_*.py", "tests/path/test_runner_errors.py"),
    "engine/idempotency.py": (
        "tests/path/test_idempotency.py",
        "tests/sources/test_fetch.py",
        "tests/api/test_fetch.py",
    ),
    "engine": (
        "tests/path/test_verbs.py",
        "tests/path/test_path.py",
        "tests/path/test_reservations.py",
        "tests/path/test_idempotency.py",
        "tests/path/test_approvals.py",
        "tests/path/test_budgets.py",
        "tests/path/test_touches.py",
        "tests/path/test_drive.py",
        "tests/path/test_engine.py",
        "tests/adapters/test_tools.py",
        "tests/administration/test_stops.py",
    ),
}
"""Which tests judge a source, by the longest prefix of its path; those of other packages seldom show more."""

_MOST_SECONDS = 60.0
"""Of tests for one mutant, besides those of the first file; what they have not noticed counts as not noticed."""

_PATIENCE = 60.0
"""Seconds for the slowest fixture on a machine that has other work."""

_REMEMBERED = 6
"""Tests that noticed the last mutants are asked first about the next one."""

_IGNORED = (".git", ".venv", ".mutation", ".hypothesis", "__pycache__", ".*_cache", "dist", "node_modules")
_PYTEST = ("-m", "pytest", "--all", "-n", "0", "-q", "-p", "no:cacheprovider", "--basetemp=../p/b")
"""With a folder of its own, and so a policy cache of its own, which every fork finds filled."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the tests of a group do without any change: their seconds, and which run each line of each file."""

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[str, list[str]]]

    def tests(self, mutant: PythonMutant) -> list[str]:
        """The tests that reach a mutant, as many as there is time for; one that takes too long keeps no other out.

        The file of tests that is named after the source comes first, then those that run much of it, then cheap ones,
        and of each file the cheap tests. Where no test was seen to run the line, all that run the file are asked:
        tracing loses lines, such as those behind an `asyncio.run`. Where none was seen to run the file, as one that
        is run in a sandbox, and of a line outside of functions, which every import runs, all of the group are asked.
        """
        lines = self.lines.get(mutant.file, {})
        known = self.seconds.keys()
        found = set[str]()
        if mutant.inner:
            found = known & {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(str(line), ())}
            found = found or known & {test for tests in lines.values() for test in tests}
        found = found or set(known)
        reach = Counter[str]()
        costs: dict[str, float] = defaultdict(float)
        for test in found & self.seconds.keys():
            costs[_file(test)] += self.seconds[test]
        for tests in lines.values():
            reach.update({_file(test) for test in tests})
        most = max(reach.values(), default=1)
        own = f"_{Path(mutant.file).name}"
        ordered = sorted(
            found & self.seconds.keys(),
            key=lambda one: (
                not _file(one).endswith(own),
                -round(reach[_file(one)] / most, 1),
                costs[_file(one)],
                _file(one),
                self.seconds[one],
                one,
            ),
        )
        spent, chosen = 0.0, list[str]()
        for test in ordered:
            if spent + self.seconds[test] <= _MOST_SECONDS or _file(test) == _file(ordered[0]):
                spent += self.seconds[test]
                chosen.append(test)
        return chosen


class Judge:
    """A copy of the tree and a warm pytest in it for one group of tests at a time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._group = ""
        self._baseline = Baseline({}, {})
        self._stamp = 2_000_000_000
        self._server: _Server | None = None
        self._killers: deque[str] = deque(maxlen=_REMEMBERED)
        self._sound: set[str] = set()  # tests that were seen to pass without any change where they noticed one

    def __enter__(self) -> Self:
        return self

    @cached_property
    def _tree(self) -> Path:
        """The copy; made when it is first needed, and what it has is what is judged."""
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mutation-"))
        tree = Path(folder).resolve() / "tree"
        (tree.parent / "p").mkdir()
        shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(*_IGNORED))
        return tree

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._stack.close()

    def verdict(self, mutant: PythonMutant) -> Verdict:
        """Run the tests that reach it."""
        group = max((one for one in TESTS if f"{mutant.file}/".startswith(f"{one}/")), key=len)
        if group != self._group:
            self._stop()
            self._group, self._baseline = group, self._measured(group)
            self._results = Results(WORK / f"{group.replace('/', '-')}.json")
            self._server = _Server(self._tree, _files(group))  # before anything is changed
        before = (self._tree / mutant.file).read_bytes()
        after = mutant.applied(before)
        key = digest(mutant.name.encode(), after)
        tests = self._baseline.tests(mutant)
        verdict, *by = self._results.get(key) or ["", ""]
        if verdict == Verdict.KILLED and by == [by[0], self._digest([by[0]])]:
            self._killers.appendleft(by[0])
            return Verdict.KILLED
        if verdict == Verdict.SURVIVED and by == [self._digest(tests)]:
            return Verdict.SURVIVED
        first = [one for one in dict.fromkeys(self._killers) if one in tests]
        killer = self._killer(mutant, before, after, [*first, *(one for one in tests if one not in first)])
        if killer is None:
            self._results.put(key, [Verdict.SURVIVED, self._digest(tests)])
            return Verdict.SURVIVED
        self._killers.appendleft(killer)
        self._results.put(key, [Verdict.KILLED, killer, self._digest([killer])])
        return Verdict.KILLED

    def _digest(self, tests: list[str]) -> str:
        """Of tests and the text of their files."""
        files = (self._tree / file for file in sorted({_file(test) for test in tests}))
        texts = [file.read_bytes() for file in files if file.exists()]
        return digest(*(test.encode() for test in sorted(tests)), *texts)

    def _killer(self, mutant: PythonMutant, before: bytes, after: bytes, tests: list[str]) -> str | None:
        """A test that notices."""
        file = self._tree / mutant.file
        while tests:
            seconds = 2 * _PATIENCE + 6 * sum(self._baseline.seconds[one] for one in tests)
            try:
                self._write(file, after)
                killer = self._warm(file, before, after, tests, seconds) if mutant.inner else ""
                killer = self._cold(tests, seconds) if killer == "" else killer
            finally:
                self._write(file, before)
            if killer is None or self._is_sound(killer, file, before):
                return killer
            print(f"fails without any change, and is not asked again: {killer}", file=sys.stderr, flush=True)
            tests = [one for one in tests if one != killer]
        return None

    def _warm(self, file: Path, before: bytes, after: bytes, tests: list[str], seconds: float) -> str | None:
        """A test that notices in a fork of the warm process, None if none does, "" if that is unknown."""
        job = {"file": str(file), "before": before.decode(), "after": after.decode(), "tests": tests}
        times = {"seconds": seconds, "each": int(_PATIENCE + 6 * max(self._baseline.seconds[one] for one in tests))}
        if self._server is None or (told := self._server.ask(job | times))["code"] == COLD:
            return ""
        return (told["last"] or tests[0]) if told["code"] == KILLED else None

    def _cold(self, tests: list[str], seconds: float) -> str | None:
        """The same in a process of its own."""
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [sys.executable, *_PYTEST, "-x", *tests],
                cwd=self._tree,
                env=_environment(self._tree),
                check=False,
                timeout=seconds,
                capture_output=True,
            )
            return tests[0] if done.returncode else None
        return tests[0]

    def _is_sound(self, test: str, file: Path, source: bytes) -> bool:
        """Whether a test that noticed passes, in the same place, without any change."""
        if test not in self._sound and self._warm(file, source, source, [test], 4 * _PATIENCE) is None:
            self._sound.add(test)
        return test in self._sound

    def _write(self, file: Path, source: bytes) -> None:
        """With a time of its own, so that no compiled file of another mutant is taken for it."""
        file.write_bytes(source)
        self._stamp += 10
        os.utime(file, (self._stamp, self._stamp))

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _measured(self, group: str) -> Baseline:
        """Run every file of tests once, unless it and the group's sources are as they were."""
        path = self._tree / group
        sources = b"".join(one.read_bytes() for one in ([path] if path.is_file() else sorted(path.rglob("*.py"))))
        seconds: dict[str, float] = {}
        lines: dict[str, dict[str, list[str]]] = {}
        for file in _files(group):
            kept = WORK / "baseline" / f"{digest(sources, file.encode(), (self._tree / file).read_bytes())}.json"
            if not kept.exists():
                print(f"measuring {file}", file=sys.stderr, flush=True)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(self._measure(file)), encoding="utf-8")
            found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
            seconds |= {one: took for one, took in found["seconds"].items() if one not in found["failed"]}
            for name, by_line in found["lines"].items():
                own = lines.setdefault(name, {})
                for line, tests in by_line.items():
                    own.setdefault(line, []).extend(tests)
        return Baseline(seconds, lines)

    def _measure(self, file: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="baseline-") as folder:
            (Path(folder) / "coveragerc").write_text(
                f"[run]\nsource = {self._tree}/engine, {self._tree}/adapters\nparallel = true\nsigterm = true\n"
                "disable_warnings = no-data-collected\n"  # by a file of tests without the engine
                f"data_file = {folder}/data\ncontext = ${{COVERAGE_MUTATION_TEST-}}\n",
                encoding="utf-8",
            )
            done = subprocess.run(
                [sys.executable, *_PYTEST, "-p", "mutation.warm", file],
                cwd=self._tree,
                env={**_environment(self._tree), "MUTATION_BASELINE": folder},
                check=False,
                capture_output=True,
                text=True,
            )
            answer = Path(folder) / "baseline.json"
            if not answer.exists():
                raise RuntimeError(f"{file} cannot be measured:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        for test in found["failed"]:
            print(f"fails or is skipped without any change: {test}", file=sys.stderr, flush=True)
        names = {name: str(Path(name).relative_to(self._tree)) for name in found["lines"]}
        found["lines"] = {names[name]: lines for name, lines in found["lines"].items()}
        return found


class _Server:
    """A warm pytest, which gets its jobs through two pipes."""

    def __init__(self, tree: Path, files: list[str]) -> None:
        jobs_read, jobs_write = os.pipe()
        answers_read, answers_write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, *_PYTEST, "-p", "mutation.warm", *files],
            cwd=tree,
            env={**_environment(tree), "MUTATION_SERVE": f"{jobs_read},{answers_write}"},
            pass_fds=(jobs_read, answers_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(jobs_read)
        os.close(answers_write)
        self._jobs: TextIO = os.fdopen(jobs_write, "w")
        self._answers: TextIO = os.fdopen(answers_read)
        self._answer()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        return self._answer()

    def stop(self) -> None:
        self._jobs.close()
        self._process.wait()
        self._answers.close()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise RuntimeError("pytest ended: run the group's tests by themselves to see why")
        found: dict[str, Any] = json.loads(line)
        return found


def _files(group: str) -> list[str]:
    return list(dict.fromkeys(_test_files(group)))


def _test_files(group: str) -> Iterator[str]:
    for one in TESTS[group]:
        path = ROOT / one
        found = sorted(path.rglob("test_*.py")) if path.is_dir() else sorted(ROOT.glob(one))
        yield from (each.relative_to(ROOT).as_posix() for each in found)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{tree}:{tree}/adapters", "PYTHONDONTWRITEBYTECODE": "1"}
