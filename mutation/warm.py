"""A plugin of pytest that collects once: it notes what each test runs, or runs some of them on each mutant.

Each mutant has a fork of the process, in which the code of the functions of the changed file is replaced.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import coverage
import pytest

SURVIVED, KILLED, COLD = 91, 1, 92
"""How a fork ends; COLD where functions cannot be exchanged, so that only a process of its own can show it.

A changed program that ends the fork by itself, whatever the exit code, was noticed.
"""

_BASELINE, _SERVE = "MUTATION_BASELINE", "MUTATION_SERVE"


class Baseline:
    """Notes which test runs which line, in every process, and how long each test takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        os.environ["COVERAGE_PROCESS_START"] = str(folder / "coveragerc")  # for the processes of the tests
        self._seconds: dict[str, float] = {}
        self._failed: list[str] = []
        self._coverage = coverage.Coverage(config_file=str(folder / "coveragerc"))
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Everything that runs meanwhile belongs to this test."""
        os.environ["COVERAGE_MUTATION_TEST"] = item.nodeid
        self._coverage.switch_context(item.nodeid)
        started = time.perf_counter()
        found = yield
        self._seconds[item.nodeid] = time.perf_counter() - started
        self._coverage.switch_context("")
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without any change kills nothing."""
        if report.failed or report.skipped:
            self._failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Put it all in one file."""
        self._coverage.stop()
        self._coverage.save()
        self._coverage.combine(keep=False)
        data = self._coverage.get_data()
        lines = {
            file: {str(line): tests for line, tests in data.contexts_by_lineno(file).items()}
            for file in data.measured_files()
        }
        found = {"seconds": self._seconds, "failed": self._failed, "lines": lines}
        (self._folder / "baseline.json").write_text(json.dumps(found), encoding="utf-8")


class Serve:
    """Takes jobs, one a line: the changed file, its two sources, the tests, and the seconds for all and for each."""

    def __init__(self, jobs: TextIO, answers: TextIO) -> None:
        self._jobs, self._answers = jobs, answers

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own loop."""
        items = {item.nodeid: item for item in session.items}
        self._send({"ready": len(items)})
        for line in self._jobs:
            job = json.loads(line)
            chosen = [items[one] for one in job["tests"] if one in items]
            self._send(self._one(session, job, chosen))
        return True

    def _send(self, what: dict[str, Any]) -> None:
        self._answers.write(json.dumps(what) + "\n")
        self._answers.flush()

    def _one(self, session: pytest.Session, job: dict[str, Any], chosen: list[pytest.Item]) -> dict[str, Any]:
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(told)
            os._exit(_run(session, job, chosen, tell))
        os.close(tell)
        code = _wait(pid, job["seconds"])
        with os.fdopen(told) as read:
            os.set_blocking(read.fileno(), False)
            begun = (read.read() or "").splitlines()
        return {"code": KILLED if code is None else code, "last": begun[-1] if begun else ""}


def _run(session: pytest.Session, job: dict[str, Any], chosen: list[pytest.Item], tell: int) -> int:
    if not _exchange(Path(job["file"]), job["before"], job["after"]):
        return COLD
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a test that hangs ends the fork
    for number, item in enumerate(chosen):
        os.write(tell, f"{item.nodeid}\n".encode())
        signal.alarm(job["each"])
        following = chosen[number + 1] if number + 1 < len(chosen) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return KILLED
    return SURVIVED


def _wait(pid: int, seconds: float) -> int | None:
    """The exit code of a fork, None if it timed out; its process group is killed."""
    deadline = time.monotonic() + seconds
    done = 0
    while not done and time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done and os.WIFSTOPPED(status):  # stopped by mistake: continue it
            os.killpg(pid, signal.SIGCONT)
            done = 0
        if not done:
            time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not done:
        os.waitpid(pid, 0)
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code in {SURVIVED, COLD} else KILLED


def _exchange(file: Path, before: str, after: str) -> bool:
    """Give every function of a file its changed code; whether that was possible."""
    old, new = _codes(compile(before, str(file), "exec")), _codes(compile(after, str(file), "exec"))
    if {name: len(codes) for name, codes in old.items()} != {name: len(codes) for name, codes in new.items()}:
        return False
    wanted = {
        (name, code.co_firstlineno, number): new[name][number]
        for name, codes in old.items()
        for number, code in enumerate(codes)
    }
    numbers = {
        (name, code.co_firstlineno, code.co_code): number
        for name, codes in old.items()
        for number, code in enumerate(codes)
    }
    gc.unfreeze()  # what was collected for is left out of the objects otherwise
    functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
    functions = [each for each in functions if each.__code__.co_filename == str(file)]
    if not functions and any(getattr(module, "__file__", None) == str(file) for module in [*sys.modules.values()]):
        return False  # imported, and not to be found
    for one in functions:
        own = one.__code__
        number = numbers.get((own.co_qualname, own.co_firstlineno, own.co_code))
        if number is None:
            return False
        try:
            one.__code__ = wanted[own.co_qualname, own.co_firstlineno, number]
        except ValueError:  # it uses other variables of the function around it
            return False
    return True


def _codes(code: types.CodeType) -> dict[str, list[types.CodeType]]:
    found: dict[str, list[types.CodeType]] = {}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.setdefault(constant.co_qualname, []).append(constant)
            for name, more in _codes(constant).items():
                found.setdefault(name, []).extend(more)
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Do what the environment asks for."""
    if folder := os.environ.pop(_BASELINE, ""):
        config.pluginmanager.register(Baseline(Path(folder)))
    elif descriptors := os.environ.pop(_SERVE, ""):
        jobs, answers = (int(one) for one in descriptors.split(","))
        config.pluginmanager.register(Serve(os.fdopen(jobs), os.fdopen(answers, "w")))
    else:
        sys.exit("mutation.warm is started by scripts/mutate")
