"""Pages of the documentation as scripts: their blocks, and the commands in them run as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.command import measured
from tests.conftest import ROOT

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = 300.0


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page that are in this language."""
    found = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for said, text in found if said == language]


def run_program(page: str) -> dict[str, Any]:
    """Run the Python program of a page here; returns its variables."""
    (program,) = blocks(page, "python")
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102  (of our own page)
    return names


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, and the output that the page shows; None where it shows none."""

    command: str
    output: str | None

    def matches(self, printed: str) -> bool:
        """Whether this was printed; `…` on a page stands for anything."""
        if self.output is None:
            return True
        parts = (re.escape(part) for part in _plain(self.output).split("…"))
        return re.fullmatch(r".*?".join(parts), _plain(printed), re.DOTALL) is not None


def steps(page: str) -> list[Step]:
    """The commands of a page in order: of `console` blocks with their output, of `sh` blocks without."""
    return steps_in((ROOT / page).read_text(encoding="utf-8"))


def steps_in(markdown: str) -> list[Step]:
    """The same, of a part of a page."""
    found: list[Step] = []
    for language, text in _BLOCK.findall(markdown):
        if language == "sh":
            found += [Step(line, None) for line in text.splitlines() if line.strip()]
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(Step(command, output or None))
    return found


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader who follows a page in a folder, with a state and a policy cache of their own.

    `variables` are those of the environment, besides PATH and these folders.
    """

    home: Path
    cache: Path
    folder: Path = ROOT
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a page; `engine` is the command of this checkout."""
        programs = self.home / "bin"
        programs.mkdir(exist_ok=True)
        engine = programs / "engine"
        engine.write_text(
            f"#!/bin/sh\nexport PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{ROOT}:{ROOT}/adapters\n"
            f'exec {sys.executable} -m engine "$@"\n',
            encoding="utf-8",
        )
        engine.chmod(0o755)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "ENGINE_STATE_DIR": str(self.home / "state"),
            "XDG_CACHE_HOME": str(self.cache.parent),
        }
        return subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env={**environment, **measured(), **self.variables},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def follow(self, step: Step) -> subprocess.CompletedProcess[str]:
        """Run a step, which must print what the page shows."""
        done = self.run(step.command)
        assert step.matches(done.stdout), (step.command, done)
        return done


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text)
