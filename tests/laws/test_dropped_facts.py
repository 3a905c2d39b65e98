"""Each fact whose absence leaves an allow standing is listed here with the reason; any other one must refuse."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from engine.cases.run import Runner
from engine.points.registry import POINTS
from tests.lanes import covering, first_of
from tests.laws.asking import ALLOWED, outcomes, shape, taken
from tests.laws.mutations import DROPPED, generic, paths, with_value

UNREAD = "no rule of the point reads it: it names things in messages, and identifies them in the record"
UNUSED = "this request uses none of it: nothing is counted, bound, carried or hinted that would need it"
EITHER = "one of several facts of which each is enough; the rule holds by the others"
WIDENS = "it can only turn a refusal into an allow: without it fewer requests are allowed"
SHOWN = "the answer is a list of tools that may be seen, and without it the list is shorter"
PERMIT = "the limits of the permit have it, and without limits there is no permit"
ADVISED = "the profile's scan is advisory: it needs the name of everything that was found, and nothing about it"
READER = "the reader refuses a source bundle without it, and no rule reads it"

ANYWHERE = (
    *("agents", "attempts", "caller.points", "checks", "children", "flows", "memories", "now", "prefixes", "quotas"),
    *("stops.[].id", "stops.[].name", "stops.[].principal", "stops.[].tool"),
)
"""What only some points ask for, and every input has."""

AGENT = ("agents.[].id", "agents.[].max_tokens", "agents.[].max_turns", "agents.[].name", "agents.[].role")
"""What names a provisioned agent and holds it in episodes."""

LISTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "adapter": {UNREAD: ("manifest.supported_operations.[].id", "tools.[].id")},
    "administration": {
        UNREAD: (
            *("approval.point", "approval.requester", "approval.requester_named", "approval.requester_via"),
            *("prefix.cwd", "prefix.words", "reason", "scope.single_use"),
        ),
        UNUSED: ("scope.approves", "scope.points"),
    },
    "artifact": {UNREAD: ("checks.[].at",), EITHER: ("checks.[].ran_in",)},
    "code_action": {
        UNREAD: (
            *("action.code.bytes", "action.input_payload.bytes", "echoed.[].upper", "hints.object"),
            *("attempts.[].code_sha256", "attempts.[].id", "attempts.[].state"),
        ),
        WIDENS: ("hints.allowed_languages.values",),
    },
    "code_execution": {
        UNREAD: ("action.code.bytes", "action.input_payload.bytes", "hints.object", "scan.names.[].bound"),
        UNUSED: ("attempts.[].id", "attempts.[].state"),
        EITHER: (
            *("scan.calls.[].builtin", "scan.calls.[].by_attribute", "scan.calls.[].by_name"),
            *("scan.members.[].top", "scan.modules.[].top"),
            *("scan.names.[].as_value", "scan.names.[].builtin", "scan.names.[].variable"),
        ),
        ADVISED: (
            *("scan.attributes.[].dunder", "scan.imports.[].kind", "scan.members.[].module", "scan.members.[].name"),
            *("scan.modules.[].as_value", "scan.names.[].dunder"),
        ),
    },
    "code_scan": {
        UNREAD: ("scan.names.[].bound", "code_sha256"),
        EITHER: (
            *("scan.calls.[].builtin", "scan.calls.[].by_attribute", "scan.calls.[].by_name"),
            *("scan.members.[].top", "scan.modules.[].top"),
            *("scan.names.[].as_value", "scan.names.[].builtin", "scan.names.[].variable"),
        ),
    },
    "code_output": {
        UNREAD: ("artifacts.[].bytes", "artifacts.[].id", "output.sha256", "run.exits.[].id"),
        UNUSED: (
            *("artifacts.[].secret", "echoed", "output.blank", "output.object", "output.parsed"),
            *("output.fields.[].characters", "output.fields.[].column.booleans", "output.fields.[].column.integers"),
            *("output.fields.[].column.longest", "output.fields.[].column.numbers", "output.fields.[].column.strings"),
            *("output.fields.[].column.texts", "output.fields.[].content", "output.fields.[].number"),
            "output.fields.[].rows",
        ),
        EITHER: ("echoed.[].text", "echoed.[].upper", "output.fields.[].sha256", "output.fields.[].upper_sha256"),
    },
    "environment": {UNREAD: ("records.[].origin_alias",)},
    "environment_act": {
        UNREAD: ("held.built", "held.checkpoint", "held.reset"),
    },
    "episode": {
        UNREAD: (
            *("changes.[].group", "changes.[].parameter", "changes.[].value", "episode", "event.sent_bytes"),
            *("actors.[].agent", "agents.[].name", "agents.[].tools", "cast.[].id"),
            *("history.[].id", "reply.digest", "reply.spend_micros", "reply.spend_stated", "reply.tokens"),
            *("reply.tokens_stated", "review", "running.[].sent_bytes"),
            *("state.[].values.price", "state.[].values.warranty"),
        ),
        UNUSED: ("proposal.justification_bytes", "reply.readable"),
    },
    "export": {
        UNREAD: (
            *("samples.[].provenance.[].id", "samples.[].shared.[].id", "samples.[].shared.[].kind"),
            *("samples.[].shared.[].record", "samples.[].shared.[].source"),
        ),
        EITHER: (
            *("samples.[].private", "samples.[].provenance.[].sensitive", "samples.[].shared.[].apart"),
            *("samples.[].shared.[].export", "samples.[].shared.[].named", "samples.[].shared.[].whole"),
            "samples.[].shared.[].words",
        ),
        PERMIT: (
            "samples.[].digest", "samples.[].provenance.[].record", "samples.[].provenance.[].source",
        ),
    },
    "license": {UNUSED: ("caller.principal",)},
    "llm": {
        UNREAD: ("addresses.[].id",),
        PERMIT: ("llm.prompt_digest", "llm.stream", "llm.url.digest"),
    },
    "mcp": {
        EITHER: (
            *("servers.[].deliverable", "servers.[].transport", "servers.[].url.canonical", "servers.[].url_stated"),
            *("tools.[].hints.open_world", "tools.[].hints.read_only", "tools.[].hints.stated"),
        ),
        UNREAD: ("servers.[].url.digest",),
        UNUSED: ("servers.[].secrets", "tools.[].hints.destructive"),
    },
    "media": {UNREAD: ("addresses.[].id", "media.digest", "media.url.digest")},
    "memory": {
        UNREAD: ("memories.[].origin", "memories.[].sensitivity", "written.[].id"),
        EITHER: ("written.[].private",),
    },
    "network": {
        UNREAD: ("addresses.[].id", "network.alias", "network.allowed_hosts.[].id", "network.id"),
        EITHER: ("network.licensed",),
        PERMIT: ("network.url.digest",),
    },
    "network_response": {
        UNREAD: ("alias", "head.declared_bytes", "request"),
        PERMIT: ("body.sha256", "id"),
    },
    "record_read": {
        UNREAD: ("id", "outcome", "point_read", "since", "until"),
        UNUSED: ("caller.principal",),
    },
    "release": {
        EITHER: ("folders.[].documented", "folders.[].id", "folders.[].total"),
    },
    "runner_bind": {EITHER: ("gate.mutual_tls", "gate.shared_token", "gate.tls", "gate.tokens")},
    "runner_capability": {
        UNREAD: ("capabilities.[].id",),
        EITHER: ("capabilities.[].flag", "capabilities.[].supported"),
    },
    "model_ref": {
        PERMIT: ("reference.mode", "reference.model", "reference.provider", "reference.slug"),
        UNUSED: ("reference.slug_provider",),
    },
    "runner_request": {
        UNUSED: (
            *("boundaries", "boundaries.[].backend", "boundaries.[].boundary", "boundaries.[].enforced"),
            *("boundaries.[].evidence", "boundaries.[].kind", "mcp_servers.[].secrets"),
            *("mcp_servers.[].starts_process", "agent.model.provider_stated"),
        ),
        UNREAD: ("attached.[].id", "content", "endpoints.[].id", "messages", "secrets.[].id"),
    },
    "sandbox": {UNUSED: ("command.words",)},
    "skill_file": {UNREAD: ("file.real.name", "path.name", "skill", "skill.digest", "skill.name")},
    "source": {
        READER: ("bundle.records.[].media_type", "bundle.records.[].origin_alias"),
        UNUSED: ("bundle.records.[].retrieved_at",),
        EITHER: ("undeclared.[].names",),
    },
    "subagent": {
        UNREAD: ("account", "task", "task.bytes", "task.digest", "user"),
        UNUSED: ("caller.principal", "children.[].state", "conversation"),
    },
    "tool_call": {
        UNREAD: (
            *AGENT,
            *("call.added", "call.arguments.[].id", "call.arguments.[].name", "call.digest", "call.summary"),
            "call.summary_cut",
            *("command_parts.[].id", "commands.[].form", "destinations.[].id", "held.built", "held.reset",
              "paths.[].id"),
        ),
        EITHER: (
            *("call.unplaced", "destinations.[].canonical", "destinations.[].command", "destinations.[].origin"),
            *("destinations.[].word",),
            *("destinations.[].word.command", "destinations.[].word.index"),
            *("destinations.[].word.label", "destinations.[].word.remote"),
            *("caller.principal", "environment.checkpoint", "environment.reset"),
            *("paths.[].canonical", "paths.[].links", "paths.[].path"),
        ),
        UNUSED: (
            *("command_parts.[].command", "command_parts.[].index", "command_parts.[].kind", "command_parts.[].name"),
            *("command_parts.[].program", "values.[].items", "values.[].shape", "values.[].size"),
        ),
        WIDENS: ("context.cwd", "destinations.[].path", "destinations.[].place"),
    },
    "tool_contract": {
        UNREAD: (
            *("detected.migration.[].id", "detected.package_name.[].id"),
            *("detected.python_code.[].id", "detected.shell_command.[].id"),
            *("proposals.[].id", "tools.[].id"),
        )
    },
    "tool_result": {
        UNREAD: ("decision", "details.[].id", "messages.[].id", "messages.[].path", "side_effects.[].id",
                 "side_effects.[].target_digest"),
        EITHER: ("links.[].data", "links.[].kind", "links.[].open", "links.[].origin"),
        UNUSED: ("messages.[].plain", "messages.[].secret", "messages.[].trace"),
    },
    "transcript": {
        UNREAD: ("entries.[].id", "entries.[].quotes.[].id"),
        EITHER: ("entries.[].quotes.[].whole", "entries.[].quotes.[].words"),
        UNUSED: ("entries.[].recipient_known",),
        PERMIT: ("entries.[].digest", "episode"),
    },
    "tool_visibility": {
        UNREAD: (*AGENT, "tools.[].id"),
        SHOWN: (
            *("agents.[].active", "agents.[].tools"),
            *("context", "context.policy", "context.profile", "caller.principal"),
            *("tools.[].definition_digest", "tools.[].hidden", "tools.[].instructions"),
            *("tools.[].name", "tools.[].occurrences"),
        ),
    },
}  # fmt: skip


# covers: H12.1-2
@pytest.mark.parametrize("point", POINTS)
def test_every_fact_that_an_allow_can_do_without_is_listed_with_a_reason(
    point: str, runner: Runner, *, full: bool
) -> None:
    found: dict[str, set[str]] = defaultdict(set)
    tried: Counter[str] = Counter()
    files = [file for file in ALLOWED if file.case.point == point]
    if not full:
        files = [file for file in files if not file.case.values] or files
    assert files
    for file in files:
        engine, document, _ = taken(runner, file)
        facts = [path for path in paths(document) if path != ("point",)]
        if not full:  # each kind of fact in two cases, under the values of policy/
            facts = [path for path in first_of(facts, generic) if tried[generic(path)] < 2]
            tried.update(map(generic, facts))
        for value in (DROPPED, None):
            asked = [with_value(document, path, value) for path in facts]
            for path, got in zip(facts, outcomes(engine, asked), strict=True):
                if got == "allow":
                    found[generic(path)].add(file.path.stem)
    listed = {path for group in LISTED.get(point, {}).values() for path in group}
    unlisted = {path: sorted(cases) for path, cases in found.items() if path not in listed and path not in ANYWHERE}
    assert unlisted == {}
    assert not full or listed <= found.keys(), sorted(listed - found.keys())


def test_a_dropped_fact_makes_no_further_tool_visible(runner: Runner, *, full: bool) -> None:
    """The fast lane asks with one case of each form of request."""
    files = [file for file in ALLOWED if file.case.point == "tool_visibility"]
    for file in files if full else covering(files, shape):
        engine, document, _ = taken(runner, file)
        seen = engine.opa.ask("decision", document).result["limits"]["visible"]
        for path in paths(document):
            for value in (DROPPED, None):
                found = engine.opa.ask("decision", with_value(document, path, value)).result
                assert set((found.get("limits") or {}).get("visible", ())) <= set(seen), (file.path.stem, path)
