"""OPA as a tool: parse, check, format and test rules. The only file that starts `opa` for that.

Every run has an argument list, an explicit environment without anything of ours, a deadline and a
cap on what it may write.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import RAISE_LIMIT, DecideError, reason_of
from engine.opa.reply import DOCTOR, complaint

_ENVIRONMENT = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""Short runs: a third less CPU for some memory, but not for gigabytes. Nothing is taken from our own environment."""

_NOT_PATTERNS = "[one | some one in input; not regex.is_valid(one)]"

OVERTIME = "eval_cancel_error"
"""OPA's code for a test that took longer."""

_LACKS = re.compile(rb"runtime: (out of memory|failed to create new OS thread)|fatal error: ")
"""How the output of a program of Go begins that the system gives no memory or thread."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What one run of OPA left: exit code, standard output, standard error."""

    code: int
    stdout: bytes
    stderr: bytes

    def json(self) -> Any:
        """The JSON of standard output, or of standard error for errors. None if it is not JSON."""
        for stream in (self.stdout, self.stderr):
            try:
                return json.loads(stream)
            except ValueError:
                continue
        return None


@dataclass(frozen=True, slots=True)
class OpaCommand:
    """Runs subcommands of one OPA binary.

    Raises DecideError if OPA cannot be started, runs longer than `seconds`, or writes more than
    `output_bytes`. A refusal by OPA is not an error here: it is in `Finished`.
    """

    binary: Path
    seconds: float = 300.0  # `opa test` of the whole policy takes 2 on an idle machine
    test_seconds: int = 10  # for one test
    output_bytes: int = 64 << 20  # the syntax tree of a file of 1 MiB has about 40

    def run(self, *arguments: str, cwd: Path | None = None) -> Finished:
        """Run `opa ARGUMENTS…` to its end."""
        try:
            process = subprocess.Popen(
                [str(self.binary), *arguments],
                cwd=cwd,
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            reason = reason_of(error)
            raise DecideError(f"cannot run OPA: {reason}", remedy=DOCTOR, code="engine.opa_binary") from error
        with process:
            try:
                stdout, stderr = self._read(process)
                if _LACKS.match(stderr):  # no refusal of what it was given
                    raise DecideError(f"OPA ended: {complaint(stderr)}", remedy=RAISE_LIMIT, code="engine.opa_binary")
                if (code := process.wait()) < 0:  # by the kernel for want of memory, for one
                    raise DecideError(f"OPA was ended by signal {-code}", remedy=RAISE_LIMIT)
                return Finished(code, stdout, stderr)
            finally:
                if process.poll() is None:
                    process.kill()

    def parse(self, file: Path, *, v0: bool = False) -> Finished:
        """The syntax tree of one file, with the text and place of every node and all comments."""
        dialect = ("--v0-compatible",) if v0 else ()
        return self.run("parse", "--format", "json", "--json-include", "locations,comments", *dialect, str(file))

    def check(self, folder: Path, capabilities: Path, schemas: Path | None = None) -> Finished:
        """Strict compilation of a policy bundle folder; errors are JSON with file, row and column.

        `schemas` is the folder of the JSON Schemas that annotations in the files name.
        """
        options = ["--strict", "--max-errors", "100", "--format", "json", "--capabilities", str(capabilities)]
        options += [] if schemas is None else ["--schema", str(schemas)]
        return self.run("check", "--bundle", *options, ".", cwd=folder)

    def unformatted(self, files: list[Path]) -> Finished:
        """The names of the files that `opa fmt` would change, one a line."""
        return self.run("fmt", "--list", *map(str, files))

    def format(self, file: Path, *, from_v0: bool = False) -> Finished:
        """The formatted text of one file; `from_v0` rewrites it into the current dialect."""
        return self.run("fmt", *(("--v0-v1",) if from_v0 else ()), str(file))

    def capabilities(self) -> dict[str, Any]:
        """Every built-in function of this OPA with its declaration."""
        found = self.run("capabilities", "--current").json()
        if not isinstance(found, dict) or not isinstance(found.get("builtins"), list):
            raise DecideError("OPA did not list its built-in functions", remedy=DOCTOR, code="engine.opa_binary")
        return found

    def not_patterns(self, texts: Path) -> list[str]:
        """Those texts of a JSON list that OPA cannot use as regular expressions."""
        found = self.run("eval", "--format=raw", "--input", str(texts), _NOT_PATTERNS).json()
        if not isinstance(found, list):
            raise DecideError("OPA did not check the regular expressions", remedy=DOCTOR, code="engine.opa_binary")
        return found

    def test(self, folder: Path, capabilities: Path, *, coverage: bool = False) -> Finished:
        """Run the tests of a policy bundle folder; with `coverage`, return the lines reached instead."""
        limits = ("--timeout", f"{self.test_seconds}s", "--capabilities", str(capabilities))
        options = ("--format", "json", "--fail-on-empty", *limits)
        return self.run("test", "--bundle", *options, *(("--coverage",) if coverage else ()), ".", cwd=folder)

    def _read(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + self.seconds
        assert process.stdout is not None  # noqa: S101 - both were asked for as pipes
        assert process.stderr is not None  # noqa: S101
        streams = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise DecideError(f"OPA took longer than {self.seconds:g} seconds", remedy=DOCTOR)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fd)
                    streams[key.fd] += data
                    if sum(map(len, streams.values())) > self.output_bytes:
                        raise DecideError(f"OPA wrote more than {self.output_bytes} bytes", remedy=DOCTOR)
        stdout, stderr = streams.values()
        return bytes(stdout), bytes(stderr)
