"""Where things are and how much is too much: every limit with its unit and its reason."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

_PACKAGE = Path(__file__).parent
_BUNDLED = _PACKAGE / "_bundled"
"""What the build hook puts into the package: OPA, and in a wheel also policy, rego and bundles."""


CONTROL = Path("run") / "control.sock"
"""The control socket below the folder of an engine's chain, which only its owner may enter."""


def bundled(name: str) -> Path:
    """A folder or file that travels with the package: from the wheel, else from the source tree."""
    inside = _BUNDLED / name
    return inside if inside.exists() else _PACKAGE.parent / name


def _state_folder() -> Path:
    chosen = os.environ.get("ENGINE_STATE_DIR")
    return Path(chosen) if chosen else _own_folder("XDG_STATE_HOME", ".local/state")


def _own_folder(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "admission-engine"


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading a file that others wrote may cost."""

    document_bytes: int = 32 << 20  # one YAML or JSON document; 10,000 records need about 8 MiB
    depth: int = 32  # nesting; the deepest document of ours has 6
    nodes: int = 2_000_000  # scalars and collections of one document
    request_values: int = 200_000  # scalars and collections of one request; 1,000 tool definitions have about 50,000
    request_keys: int = 10_000  # keys of one object of a request; each unknown one is an error to build
    content_bytes: int = 4 << 30  # one content file
    total_bytes: int = 16 << 30  # all content of one source bundle, unpacked
    files: int = 100_000  # files and folders of one source bundle or archive


@dataclass(frozen=True, slots=True)
class OpaLimits:
    """Time limits of OPA in seconds, size limits of requests and answers in bytes, and the answers that are kept."""

    start_seconds: float = 60.0  # an idle machine needs about 1, a busy one sometimes more than 20
    answer_seconds: float = 60.0  # a source bundle of 10,000 records needs about 2
    input_bytes: int = 64 << 20  # canonical JSON of one request
    answer_bytes: int = 64 << 20  # findings of a bundle in which every record is refused
    shared_answers: int = 8_192  # answers that are kept for equal cases, of about 1 KiB each; 0: every request is asked


@dataclass(frozen=True, slots=True)
class Settings:
    """One engine's folders and limits. Only the variables of the remote model are read from the environment later."""

    state: Path = field(default_factory=_state_folder)
    database: str | None = field(default_factory=lambda: os.environ.get("ENGINE_STATE_DATABASE") or None, repr=False)
    """Address of a PostgreSQL database with the state of several engines, in place of the file in the folder.

    It may have a password, and is not in the `repr`.
    """
    cache: Path = field(default_factory=lambda: _own_folder("XDG_CACHE_HOME", ".cache"))
    rego: Path = field(default_factory=lambda: bundled("rego"))
    policy: Path = field(default_factory=lambda: bundled("policy"))
    recipe: Path = field(default_factory=lambda: bundled("bundles") / "default")
    read: ReadLimits = ReadLimits()
    opa: OpaLimits = OpaLimits()
    release: Path | None = None  # a signed release to serve instead of rego, policy and recipe
    release_key: Path | None = None  # public key (PEM) that it must be signed with
    releases: Path | None = None  # signed releases, of which the one is served that the engines of the state agreed on
    unsigned_release_for_development: bool = False
    ca_file: Path | None = None  # authorities (PEM) that a fetch trusts; None for those of certifi
    env_file: Path | None = None  # variables of the remote model as NAME=value; those of the process outrank them
    remote_model: bool = True  # whether these are read; a server of an adapter reads no credentials
    fetch_root: Path | None = None  # the only folder below which POST /v1/fetch writes; None refuses it
    build_root: Path | None = None  # the only folder below which POST /v1/build writes; None refuses it
    root: Path | None = None  # the only folder below which requests may name paths; None in process
    code_runs: int = 8  # programs in sandboxes at a time; each may use the memory of its profile
    code_waiting: int = 32  # runs of code that wait for their turn; more are refused
    warm_sandboxes: int = 0  # that wait for programs like the last ones; each is three processes
