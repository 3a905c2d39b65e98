"""The tool `project_shell`: one command in the sandbox on copies of a folder's files, without a network.

    tool = ProjectShell(engine, context, folder=Path("my-project"))
    tool.register(registry)

The gate decides on each call at `tool_call`, the run is decided on at `sandbox`, and the files that it leaves at
`code_output`: those that may be kept replace the files of the folder. It has no way out, so what it reads goes nowhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from admission_adapters.tools.effects import record_side_effect
from admission_adapters.tools.registering import Registered, object_schema, refusal
from admission_adapters.tools.sandbox_shell import Ran, RunsShell, command_report

DEFINITION: dict[str, Any] = {
    "name": "project_shell",
    "description": "Run one bash command in a private folder, without a network. Files of the project are in inputs/,"
    " read-only. Once the command succeeds, files that it left in artifacts/ replace those of the project.",
    "input_schema": object_schema({"command": {"type": "string"}}, "command"),
}
SIDE_EFFECTS = ("execute", "write")


class ProjectShell(Registered):
    """The tool of one agent. Calls at the same time read and write the same folder."""

    def __init__(self, engine: RunsShell, context: Any, *, folder: Path, profile: str = "shell") -> None:
        """`folder` is the project on this machine; `profile` is one of policy/sandbox.yaml."""
        super().__init__(engine, context, DEFINITION, SIDE_EFFECTS)
        self._engine, self._folder, self._profile = engine, folder, profile

    def project_shell(self, command: str) -> dict[str, Any]:
        """Run one command. Raises ToolValidationError with the code of the refusal, or the fault of the engine."""
        record_side_effect("execute", id="command", target=command)
        record_side_effect("write", id="folder", target=str(self._folder))
        ran: Ran = self._engine.run_shell(command, folder=self._folder, profile=self._profile, context=self._context)
        if ran.ended is None or ran.answer.fault is not None:
            raise refusal(ran.answer)
        return {**command_report(ran.ended), "written": sorted(ran.files), "not_written": dict(ran.not_kept)}
