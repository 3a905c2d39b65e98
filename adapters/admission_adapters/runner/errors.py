"""The errors for boundaries that a runner does not support: one class for each boundary.

    WorkError
    └── UnsupportedBoundaryError
        ├── LocalNetworkUnsupportedError
        ├── FilesystemUnsupportedError
        ├── McpUnsupportedError
        └── CodeToolUnsupportedError

A decision stays the only word on what may run: `raise_unsupported` explains a refusal, and its silence
permits nothing.
"""

from __future__ import annotations

from typing import ClassVar

from engine.errors import WorkError
from engine.model import Decision, Outcome


class UnsupportedBoundaryError(WorkError):
    """A declared boundary that nothing here enforces; only its four kinds are raised.

    `subject` is the subject of the finding, such as `tools/search`; None for the run as a whole.
    """

    text: ClassVar[str]
    advice: ClassVar[str]

    def __init__(self, subject: str | None = None) -> None:
        super().__init__(self.text, remedy=self.advice)
        self.subject = subject


class LocalNetworkUnsupportedError(UnsupportedBoundaryError):
    """A restricted network on a machine without network control for a single run (D07)."""

    code = "LOCAL_NETWORK_UNSUPPORTED_MESSAGE"
    text = "a restricted network is not supported on the local backend"
    advice = "use a remote backend with proven network control, or omit the network"


class FilesystemUnsupportedError(UnsupportedBoundaryError):
    """A file system value without a proven file system jail (D09)."""

    code = "FILESYSTEM_UNSUPPORTED_MESSAGE"
    text = "a file system boundary is not supported by this backend"
    advice = "omit the file system, or use a backend with a proven file system jail"


class McpUnsupportedError(UnsupportedBoundaryError):
    """A process of an MCP server on the runner, or a tool that could be delivered over MCP only (D12, D16)."""

    code = "MCP_UNSUPPORTED_MESSAGE"
    text = "MCP servers are not supported by the sidecar."  # exactly these words: callers compare them
    advice = "leave out servers that are started by a command, and tools where the harness takes them over MCP only"


class CodeToolUnsupportedError(UnsupportedBoundaryError):
    """A tool that is code (D14)."""

    code = "CODE_TOOL_UNSUPPORTED_MESSAGE"
    text = "code tools are not supported by the runner"
    advice = "leave out the code, and offer the tool through the gateway"


_CLASSES: tuple[type[UnsupportedBoundaryError], ...] = (
    LocalNetworkUnsupportedError,
    FilesystemUnsupportedError,
    McpUnsupportedError,
    CodeToolUnsupportedError,
)
"""By priority: the first that a run declares is raised."""


def raise_unsupported(decision: Decision) -> None:
    """Raise the error of the first unsupported boundary that the decision names, if it names one.

    A deny without such a boundary raises nothing: check `decision.outcome` before anything runs.
    """
    if decision.outcome is Outcome.ALLOW:
        return
    for kind in _CLASSES:
        for finding in decision.findings:
            if finding.code == kind.code:
                raise kind(finding.subject)
