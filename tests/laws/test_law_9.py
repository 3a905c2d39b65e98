"""Law 9: no policy value stands in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from engine.documents.files import load
from engine.points.registry import POINTS
from engine.settings import ReadLimits
from engine.values import DOCUMENTS
from engine.values.code import Scan
from tests.conftest import ROOT


def test_9_no_policy_value_is_hard_coded_in_python() -> None:
    values = _policy_words()
    assert {"MIT", "CC-BY-4.0", "artifact_subdir"} <= values  # the control: the words are found in policy/
    everywhere: dict[str, list[str]] = {}
    for path in [*(ROOT / "engine").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
        }
        own = values | _scan_words() if "_scan" in path.stem else values
        wrong = (found & own) - _SHARED_WORDS.get(path.relative_to(ROOT).as_posix(), set())
        if wrong:
            everywhere[path.relative_to(ROOT).as_posix()] = sorted(wrong)
    assert not everywhere, "files that hold policy values"


_CONTACT = {"city", "email", "phone", "tags"}
"""Fields of a contact, and so arguments of its tools; the fields that there are is no decision."""

_SHARED_WORDS: dict[str, set[str]] = {
    "adapters/admission_adapters/frameworks/claude_agent.py": {"ask"},  # an answer to the SDK
    "adapters/admission_adapters/fetch.py": {"https"},  # how to connect to what the limits name
    "adapters/admission_adapters/environments/contacts.py": _CONTACT,
    "adapters/admission_adapters/environments/session.py": {
        *("in_process", "reads_state", "tools/list", "unaffected"),  # what the manifest of its own tools states
    },
    "adapters/admission_adapters/tools/http_get.py": {"http_get"},  # its own name
    "adapters/admission_adapters/tools/registering.py": {"workspace"},  # the environment of tools of this package
    "adapters/admission_adapters/tools/project_shell.py": {"project_shell"},  # its own name
    "adapters/admission_adapters/tools/sandbox_shell.py": {"sandbox_shell"},  # its own name
    "engine/facts/material.py": _CONTACT,
    "engine/facts/proposals.py": {"dialogue", "monologue"},  # fields of an ActionProposal
    "engine/episodes/run.py": {"dialogue", "monologue"},  # as proposals.py
    "engine/api/client.py": {"application/json"},  # the type of its own messages
    "engine/api/docs.py": {"application/json", "tags"},  # as client.py; a field of OpenAPI
    "engine/cli/administration/control.py": {"application/json"},  # as client.py
    "engine/record/export.py": {"application/json"},  # as client.py
    "adapters/admission_adapters/files/artifacts.py": {"artifact_subdir"},  # the boundary it was shown to hold
    "adapters/admission_adapters/runner/run.py": {
        "application/json",
        "application/x-ndjson",
        "https",
    },  # how to connect to what the limits name, and the type of its messages
    "engine/runner/evidence.py": {"egress"},  # the boundary that a platform proves
    "engine/runner/harnesses.py": {"filesystem_jail"},  # the boundary that a sandbox was shown to hold
    "adapters/admission_adapters/sandbox/bubblewrap/arguments.py": {"bin"},  # a folder below /usr
    "adapters/admission_adapters/sandbox/run/cgroup.py": {"ascii", "1", "/proc/"},  # how the kernel's files are read
    "adapters/admission_adapters/sandbox/run/cpu.py": {"ascii"},  # as cgroup.py
    "adapters/admission_adapters/sandbox/run/handshake.py": {"/proc/"},  # as cgroup.py
    "adapters/admission_adapters/sandbox/launcher/inside.py": {"main.py"},  # what traces of code name
    "adapters/admission_adapters/sandbox/launcher/launch.py": {
        "main.py",
        "javascript",
        "python",
    },  # interpreters
    "adapters/admission_adapters/sandbox/machine.py": {"filter"},  # of system calls
    "engine/facts/shell/__init__.py": {"1", "2"},  # standard output and standard error
    "adapters/admission_adapters/sandbox/gvisor/probe.py": {"1", "python", "/proc/"},  # what its probe looks at
    "adapters/admission_adapters/sandbox/probe/acts.py": {"1", "python", "/proc/"},  # what a probe looks at
    "adapters/admission_adapters/sandbox/run/report.py": {"ascii"},  # how refused names are made safe
    "adapters/admission_adapters/sandbox/run/user.py": {"ascii", "1", "/proc/"},  # as cgroup.py
    "adapters/admission_adapters/shim/tools.py": {"tools/list"},  # a method of MCP
    "adapters/admission_adapters/shim/pump.py": {"tools/list"},  # as shim/tools.py
    "adapters/admission_adapters/runner/mcp_server.py": {"1", "tools/list"},  # as shim/tools.py, and its version
    "adapters/admission_adapters/runner/shim.py": {"1", "tools/list"},  # as mcp_server.py
    "engine/points/adapter_envelope.py": {"[0-9a-f]{32}", "tools/list"},  # the form of its ids; a method of MCP
    "engine/documents/edits.py": {"off"},  # a word that YAML 1.1 reads as false
    "engine/ray/cluster.py": {"1"},  # how a variable of Ray is set
    "engine/state/postgres/connecting.py": {"off"},  # how PostgreSQL states a setting
    "engine/workbench/kept.py": {"image/gif", "image/jpeg", "image/png"},  # pictures that every browser shows
    "engine/api/authzen.py": {"https"},  # the scheme of the engine's own address
    "engine/api/openapi.py": {
        *("Apache-2.0", "application/json", "tags", "text/plain"),  # its license, types of its answers, a field
    },
    "engine/api/server.py": {"https"},  # as authzen.py
    "engine/api/tracing.py": {"https"},  # the scheme of the collector that the operator names
    "engine/cli/machine/doctor.py": {"python"},  # a line of its report
    "engine/cli/formats/sarif.py": {"region", "tags"},  # fields of SARIF
    "engine/cli/formats/problems.py": {"passed"},  # a word of its formats
    "engine/cli/tools/changes.py": {"off", "{cwd}/", "workspace"},  # plain English; as tools.py; as registering.py
    "engine/cli/code/commands.py": {"main.py", "python", "LOGNAME"},  # of a `.py` file; of POSIX
    "engine/cli/outputs.py": {"denied"},  # a word that is printed in red
    "engine/cli/tools/list_tools.py": {"denied"},  # plain English
    "engine/facts/code/scan.py": {"javascript", "python", "wasm"},  # the languages that there are scanners for
    "engine/facts/code/scan_items.py": {"dunder", "module"},  # kinds of text and of imports that a scan distinguishes
    "engine/facts/code/javascript_scan.py": {
        *("constructor", "javascript", "member_variable", "property", "prototype", "this"),  # what a tree calls things
        *("arguments", "getBuiltinModule", "module", "require"),
        "input",  # the reader that the sandbox brings
    },
    "engine/facts/code/python_scan.py": {
        "format",
        "input",
        "python",
    },  # the reader of the input, and what fills text in
    "engine/facts/text/proposal_text.py": {"javascript", "python", "shell", "wasm"},  # languages of fenced blocks
    "engine/facts/tools/proposals.py": {"python", "shell"},  # what brings a command or code
    "engine/facts/net/addresses.py": {"100.64.0.0/10"},  # what `shared` means there, by RFC 6598
    "engine/facts/run_request.py": {"assistant"},  # a role of messages
    "engine/facts/net/hosts.py": {  # which numbers in a text are taken for addresses, by RFC 1122, 1918 and 3927
        *("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
    },
    "engine/points/network.py": {"external"},  # the kind of what is fetched, in events
    "engine/policy_bundle/sources.py": {"README.md"},  # the one file that may stand beside rules and values
    "engine/facts/media.py": {  # what a type is known by; which ones are admitted is a value
        *("application/pdf", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm"),
        *("application/x-pdf", "audio/mp3", "audio/x-flac", "audio/x-mp3", "image/jpg", "image/pjpeg", "image/x-png"),
        *("audio/vnd.wave", "audio/x-m4a", "audio/x-wav", "image/gif", "image/jpeg", "image/png", "image/webp"),
    },
    "engine/opa/build.py": {"local", "off"},  # words of the Go toolchain
    "engine/opa/server.py": {"/proc/"},  # where the kernel tells about processes
    "engine/sources/metadata.py": {
        *("README.md", "croissant.json", "datapackage.json"),  # files that it reads
        "workspace",  # a table of Cargo.toml
    },
    "engine/sources/start.py": {
        *("text/markdown", "application/octet-stream"),  # what a file is by its suffix
        *("application/jsonl", "application/x-ndjson", "application/yaml"),
    },
    "engine/points/source.py": {"reading"},  # what people are told while they wait
    "engine/policy_bundle/syntax.py": {"head"},  # of a rule
    "engine/policy_bundle/bodies.py": {"head"},  # as syntax.py
    "engine/points/artifact.py": {"passed"},  # a fact of a check
    "engine/cli/record/verification.py": {"head"},  # of the chain
    "engine/cli/machine/doctor_sandbox.py": {
        "1",
        "javascript",
        "python",
    },  # what the kernel says; the interpreters that are looked for
    "engine/facts/code/wasm_scan.py": {"wasm"},  # as code_scan.py
    "adapters/admission_adapters/sandbox/wasm/backend.py": {"wasm"},  # the one language of this backend
    "adapters/admission_adapters/sandbox/wasm/probe.py": {"1"},  # what its probe looks at
    "adapters/admission_adapters/sandbox/probe/watch.py": {"1", "2"},  # as probe/acts.py
    "adapters/admission_adapters/sandbox/probe/control.py": {"main.py"},  # as inside.py
    "adapters/admission_adapters/sandbox/probe/trial.py": {"python"},  # as probe/acts.py
    "adapters/admission_adapters/sandbox/packages.py": {"python"},  # a field of its manifest
    "engine/values/tools.py": {"{cwd}/"},  # how paths below the working folder are written
}
"""Words of a file that are a policy value as well, with their reason."""


_INTERFACES = {"application/json"}
"""What the engine's own interfaces send and receive; whether it may be fetched is a value."""


def _policy_words() -> set[str]:
    """Every word in policy/, without the vocabulary of its documents and of requests: field names, closed choices.

    What stands in levels.yaml are codes, the vocabulary of rules.
    """
    found: set[str] = set()
    for path in {*(ROOT / "policy").glob("*.yaml")} - {ROOT / "policy" / "levels.yaml"}:
        document = load(path.read_bytes(), path.name, ReadLimits()).value
        found |= set(_words({name: value for name, value in document.items() if (path.stem, name) not in _ORDINARY}))
    models = [*DOCUMENTS.values(), *(point.request for point in POINTS.values())]
    vocabulary = {word for model in models for word in _vocabulary(model.model_json_schema())}
    return (
        {word for word in found if " " not in word} - vocabulary - _INTERFACES - {*POINTS, *DOCUMENTS, "none", "*"}
    )  # plain English


_SCAN = ("code", "scan")
"""Names of Python and JavaScript themselves, such as `list`: ordinary words but where code is scanned."""


_ORDINARY = {
    _SCAN,
    ("mcp", "methods"),
    ("tools", "words_without_hosts"),
    ("secrets", "options"),
    ("tools", "plain_sql_functions"),
    ("addresses", "local_names"),
    ("commands", "programs"),
    ("commands", "variables"),
    ("memory", "origins"),
    ("waivers", "waivable"),
    *(("release", section) for section in ("docstrings", "further_suites", "suites")),
}
"""Sections of names of a protocol or of codes, or that are ordinary words as well, such as `log`, `localhost`."""


def _scan_words() -> set[str]:
    document, section = _SCAN
    path = ROOT / "policy" / f"{document}.yaml"
    return set(_words(load(path.read_bytes(), path.name, ReadLimits()).value[section])) - {*Scan.model_fields, "utf-8"}


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str):
        yield value


def _vocabulary(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from (word for word in [*schema.get("enum", ()), schema.get("const")] if isinstance(word, str))
        for inner in schema.values():
            yield from _vocabulary(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _vocabulary(inner)
