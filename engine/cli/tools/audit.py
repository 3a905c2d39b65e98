"""`engine tools audit`: what an MCP server lists, against what was admitted.

With the texts of its definitions, and entries to paste for what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.cli.formats import extended
from engine.cli.inputs import content
from engine.cli.tools.changes import pasted
from engine.cli.tools.definition_texts import ComparedDefinition, compared
from engine.cli.tools.requests import definitions_in
from engine.documents.edits import scalar
from engine.documents.files import printable
from engine.engine import Engine
from engine.errors import Location
from engine.facts.tools.definitions import Definition, UnreadableDefinitionError, listing_of
from engine.facts.tools.mcp_names import local_name
from engine.flow import Answer
from engine.flow import Context as Asker
from engine.policy_bundle.build import PolicyBundle
from engine.reports.explain import Report, report

_PLAIN = ("integer", "number", "boolean")
"""Types of JSON Schema whose values name no host, path or command."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Text to paste into a file of policy/: what it is for, and the value below which it belongs."""

    about: str
    where: Location | None
    text: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The decisions on a list of tools, their definitions, and the entries to paste after a review of new tools."""

    report: Report
    server: str
    definitions: tuple[ComparedDefinition, ...] = ()
    entries: tuple[Entry, ...] = ()

    def printed(self, how: str) -> str:
        """The report as `engine check` prints it, then the definitions, then what to paste where."""
        lines = []
        if self.definitions:
            lines += ["", f"definitions that `{printable(self.server, 100)}` lists:", ""]
            lines += [line for one in self.definitions for line in one.lines()]
        if any(one.state == "changed" and not one.changes for one in self.definitions):
            lines += ["", "to see what changed, name the list that was reviewed: --before FILE"]
        for entry in self.entries:
            place = "" if entry.where is None else f" into {entry.where}"
            lines += ["", f"{entry.about}; paste this{place} after reviewing what the tools do:", ""]
            lines += [f"  {line}" for line in entry.text.split("\n")]
        more = {
            "definitions": [asdict(one) for one in self.definitions],
            "entries": [asdict(one) for one in self.entries],
        }
        return extended(how, self.report, more, lines)


def audit(engine: Engine, file: Path, server: str, before: Path | None, asker: Asker) -> Audit:
    """A dry run of point `mcp` on what a server lists; `before` is an earlier list of the same server.

    Raises GatherError where a file cannot be read at all.
    """
    listed, earlier, policy = content(file), () if before is None else definitions_in(before), engine.policy
    transport, relay = "http", {}
    if policy is not None and _table(policy, server) == "started":
        transport, relay = "stdio", {"relay": (policy.row(("mcp", "sandboxes")).value or [None])[0]}
    request = {"phase": "list", **relay, "servers": [{"name": server, "transport": transport, "definitions": listed}]}
    answer = engine.check("mcp", request, asker)
    outcome = report(str(file), answer, policy)
    if policy is None or answer.fault is not None:
        return Audit(outcome, server)
    found = _definitions(listed)
    comparison = compared(found, _pins(policy, server), earlier)
    return Audit(outcome, server, tuple(comparison), tuple(_entries(policy, answer, server, found)))


def _pins(policy: PolicyBundle, server: str) -> dict[str, str]:
    """The digest of each definition that was admitted, by the name that the server gives the tool."""
    rows = policy.row(("mcp", _table(policy, server), server, "tools")).value or {}
    return {name: row["definition"] for name, row in rows.items()}


def _table(policy: PolicyBundle, server: str) -> str:
    return "servers" if policy.row(("mcp", "started", server)).value is None else "started"


def _place(policy: PolicyBundle, *path: str) -> Location | None:
    """Where to paste what belongs below a value: in the file that one may edit, if the value is not in it yet."""
    shipped, where = f"policy/{path[0]}.yaml", policy.row(path).where
    own = policy.sources.with_own_files(shipped)
    return where if where is None or own in {where.file, shipped} else Location(own, None, where.field)


def _definitions(listed: Any) -> Sequence[Definition]:
    try:
        return listing_of(listed)[0]
    except UnreadableDefinitionError:
        return ()  # the policy has refused it


def _entries(policy: PolicyBundle, answer: Answer, server: str, found: Sequence[Definition]) -> Iterator[Entry]:
    """Entries for what findings call unknown or changed: rows of policy/tools.yaml, then of policy/mcp.yaml.

    The former pin a definition under the name by which agents see and call it, the latter as its server gave it.
    """
    codes: dict[str, set[str]] = {}
    for finding in answer.decision.findings:
        codes.setdefault((finding.subject or "").partition("/")[2], set()).add(finding.code)
    admitted = policy.row(("mcp", _table(policy, server))).value or {}
    unknown, fresh = [], {}
    for one in found:
        name = local_name(server, one.name)
        reported = codes.get(name, set())
        if "tool_unknown" in reported:
            unknown.append(pasted(name, argument_types(one), replace(one, name=name).digest()))
        if reported & {"definition_unknown", "definition_changed"} or server not in admitted:
            fresh[one.name] = one.digest()
    if unknown:
        about = f"{len(unknown)} tool{'s have' if len(unknown) > 1 else ' has'} no entry"
        yield Entry(about, _place(policy, "tools", "tools"), "\n".join(unknown))
    if fresh:
        yield _pinned(policy, server, fresh)


def _pinned(policy: PolicyBundle, server: str, fresh: Mapping[str, str]) -> Entry:
    """The digests of definitions that are not admitted in their current form."""
    rows = [f"{scalar(name)}: {{definition: {scalar(digest)}}}" for name, digest in fresh.items()]
    known = ("mcp", _table(policy, server), server)
    if policy.row(known).value is not None:
        where = _place(policy, *known, "tools")
        about = f"{len(rows)} definition{'s are' if len(rows) > 1 else ' is'} new or changed"
        return Entry(about, where, "\n".join(rows))
    lines = [
        f"{scalar(server)}:",
        "  transport: http",
        '  origin: "https://mcp.example.com"  # replace with the origin of the server',
        "  secrets: []",
        "  tools:",
        *(f"    {row}" for row in rows),
    ]
    about = f"the server `{printable(server, 100)}` is not admitted"
    return Entry(about, _place(policy, "mcp", "servers"), "\n".join(lines))


def argument_types(one: Definition) -> dict[str, str]:
    """The type of each argument, sorted: what its schema says for certain, else `data`, which covers most."""
    properties = (one.input_schema or {}).get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: _type(found[name]) for name in sorted(name for name in found if isinstance(name, str))}


def _type(schema: Any) -> str:
    stated = schema if isinstance(schema, Mapping) else {}
    if stated.get("type") in _PLAIN:
        return "text"
    return "url" if stated.get("type") == "string" and stated.get("format") == "uri" else "data"
