"""What the tests of the laws share: the cases they run over, and how a case, an input or many are decided."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from engine.cases.run import CaseFile, Runner, changed
from engine.documents.files import load
from engine.drive import run
from engine.engine import Engine
from engine.errors import DecideError, GatherError, Location
from engine.facts.archives.source_bundle import DOCUMENT
from engine.flow import Answer, Context, Services, answer
from engine.gather import FROM_STATE
from engine.model import Mode, Outcome, Revisions, is_reserved
from engine.points.registry import POINTS
from engine.points.source import SourceRequest
from engine.policy_bundle.serving import Unavailable
from engine.settings import ReadLimits
from engine.work import Executor
from tests.conftest import ROOT
from tests.covers import cases
from tests.laws.mutations import Path_, each_kind, generic, paths, single

MOST = 32
"""Inputs of one batch: one that a built-in refuses has its batch asked again in halves."""

RANK = {"deny": 0, "confirm": 1, "allow": 2}
DECIDED = sorted(
    [file for file in cases() if not any(is_reserved(code) for code in file.case.want.codes)],
    key=lambda file: bool(file.case.values),
)
"""Cases that rules decide; first those under the values of policy/, which need no engine of their own."""

ALLOWED = [file for file in DECIDED if file.case.want.outcome is Outcome.ALLOW]
ONE_EACH = [
    next(file for file in ALLOWED if file.case.point == point and not file.case.values)
    for point in POINTS
    if point != "provisioning"  # under the values of policy/ a person approves each agent
]
"""An allowed case of each point, all under the values of policy/, for laws that break an engine."""

NARROWED = [file for file in DECIDED if file.case.want.outcome is not Outcome.ALLOW]
"""Cases whose outcome could be wider."""

ON_BUNDLES = [file for file in DECIDED if file.case.bundle is not None]


def point_of(file: CaseFile) -> list[Hashable]:
    return [file.case.point]


def shape(file: CaseFile) -> list[Hashable]:
    """The point and the fields of a request."""
    return [(file.case.point, frozenset(map(generic, paths(file.case.request or {}))))]


def codes(file: CaseFile) -> list[Hashable]:
    """The codes of a case at its point; None for a case without one."""
    return [(file.case.point, code) for code in file.case.want.codes or (None,)]


COMMON = {"caller": {"via": "process", "points": []}, **{name: [] for name in FROM_STATE}}
"""Facts that every input has."""


def taken(runner: Runner, file: CaseFile) -> tuple[Engine, dict[str, Any], str]:
    """The engine of a case, its input as OPA sees it, and its outcome."""
    engine = runner.at(file)
    if file.path not in _TAKEN:
        got = runner.answer(file)
        assert got.document is not None
        _TAKEN[file.path] = (got.document, got.decision.outcome)
        _ABOUT[file.path] = {one.subject.rpartition("/")[2] for one in got.decision.findings if one.subject}
    return engine, *_TAKEN[file.path]


def mutated(file: CaseFile, document: Any, *, full: bool) -> list[tuple[Path_, Any, Any]]:
    """Mutants of a document of a case that was taken: all of them, or each kind once."""
    return list(single(document) if full else each_kind(document, _ABOUT[file.path]))


_ABOUT: dict[Path, set[str]] = {}
"""The ids of the items that findings of a case are about."""


_TAKEN: dict[Path, tuple[dict[str, Any], str]] = {}
"""What `taken` found; the same for every law."""


def outcomes(engine: Engine, documents: Sequence[dict[str, Any]]) -> list[str]:
    """What the policy says of many inputs, through the batch entry.

    With strict built-in errors one failing built-in fails a whole batch; by itself it is a refusal.
    """
    if not documents:
        return []
    if len(documents) > MOST:
        parts = [documents[at : at + MOST] for at in range(0, len(documents), MOST)]
        return [outcome for part in parts for outcome in outcomes(engine, part)]
    try:
        reply = engine.opa.ask("decisions", {"items": list(documents)}).result
    except DecideError as error:
        if error.code != "engine.opa_error":
            raise
        middle = len(documents) // 2
        return outcomes(engine, documents[:middle]) + outcomes(engine, documents[middle:]) if middle else ["deny"]
    assert len(reply) == len(documents)
    return [decision["outcome"] for decision in reply]


class Reads(NamedTuple):
    """The values and the facts that rules can read: references are static, the build sees to that."""

    values: frozenset[str]
    facts: frozenset[str]


def read_for(file: CaseFile, runner: Runner) -> Reads:
    """What the requirements read whose codes a case has: its outcome widens only if one of these holds."""
    engine, point = runner.engine({}), file.case.point
    assert engine.policy is not None
    requirements = engine.policy.catalogue.points[point].requirements
    found = [requirements.get(code) for code in file.case.want.codes]
    files = [one.file for one in found if one is not None and not one.added]
    return read_by(point, tuple(files)) if len(files) == len(found) else read_by(point)


@cache
def read_by(point: str, files: tuple[str, ...] | None = None) -> Reads:
    """What these files of rules, or all of a point, can read, with the libraries they use."""
    rules = ROOT / "rego" / "admission"
    every = [*(rules / "requirements" / point).glob("*.rego"), *(rules / "requirements" / "common").glob("*.rego")]
    waiting = [*every, rules / "limits" / f"{point}.rego"] if files is None else [ROOT / file for file in files]
    waiting += [rules / "lib" / "approval.rego", rules / "lib" / "waiver.rego"]
    seen: set[Path] = set()
    values, facts = {"levels", "approvals"}, {"caller"}  # what the generated modules read
    while waiting:
        file = waiting.pop()
        if file in seen or file.name.endswith("_test.rego"):
            continue
        seen.add(file)
        text = file.read_text(encoding="utf-8")
        values |= set(re.findall(r"\bdata\.policy\.([a-z_]+)", text))
        facts |= set(re.findall(r"\binput\.([a-z_]+)", text))
        facts |= set(re.findall(r"^#   each: ([a-z_]+)", text, re.MULTILINE))
        waiting += [rules / "lib" / f"{name}.rego" for name in re.findall(r"\bdata\.admission\.lib\.([a-z_]+)", text)]
        assert not re.search(r"\bdata\.admission\.(requirements|limits)\b", text.partition("\n")[2]), file
    return Reads(frozenset(values), frozenset(facts))


def context(file: CaseFile) -> Context:
    """The caller of this case."""
    return Context(caller=file.case.caller)


def parts(engine: Engine) -> Services:
    assert engine.services is not None
    return engine.services


def enforced(engine: Engine, file: CaseFile, request: Any, executor: Executor | None = None) -> Answer:
    """The request of a case, enforced on the path that every point has."""
    return run(answer(POINTS[file.case.point], request, Mode.ENFORCE, parts(engine), context(file), executor))


def document(file: CaseFile, folder: Path) -> tuple[Path, Any]:
    """A copy of the case's source bundle, and its document."""
    assert file.case.bundle is not None
    bundle = changed((file.path.parent / file.case.bundle).resolve(), folder, file.case.drop, file.case.set)
    return bundle, load((bundle / DOCUMENT).read_bytes(), DOCUMENT, ReadLimits()).value


def facts(engine: Engine, bundle: Path, changes: Any) -> dict[str, Any] | None:
    """The input for a source bundle with another document; None when it cannot be read as one."""
    (bundle / DOCUMENT).write_text(json.dumps(changes), encoding="utf-8")
    point = POINTS["source"]
    try:
        context = parts(engine).gather_context
        gathered = point.gather(SourceRequest(path=str(bundle), digest=None), context)
    except GatherError:
        return None
    with closing(gathered):
        return point.document(gathered, context.clock()) | COMMON


PAYLOADS = {
    "adapter": {"definition"},
    "adapter_envelope": {"arguments"},
    "code_output": {"artifacts"},
    "episode": {"usage", "values"},
    "export": {"content"},
    "llm": {"messages"},
    "mcp": {"definitions", "env"},
    "runner_request": {"env", "harness_kwargs", "secrets"},
    "tool_call": {"arguments", "input", "definition", "_meta"},
    "tool_contract": {"contract", "definition"},
    "tool_visibility": {"tools"},
}
"""Fields of requests that hold any JSON of others, which is looked through: with less in it there is less to refuse.

Nothing in them is stated to the engine; emptied, they hold nothing. What it found there is a fact, and the law on
facts holds without exception.
"""


PROPOSED = {"code_action", "code_execution"}
"""Points whose requests hold a proposed action and the hints beside it."""


OPEN = {
    **{name: {"action", "policy_hints"} for name in PROPOSED},
    "adapter": {"manifest"},
    "adapter_envelope": {"asked", "envelope"},
    "code_action": {"action", "policy_hints", "request"},
    "code_output": {"request"},
    "tool_call": {"call"},
}
"""Fields of requests that hold what others wrote: what is unknown in it has a code of its own, or is no fact (C78)."""


def payload(point: str, path: Sequence[str | int], *, itself: bool = False) -> bool:
    """Whether a path leads into a payload, or with `itself` to it."""
    return any(part in PAYLOADS.get(point, ()) for part in (path if itself else path[:-1]))


def served_values(engine: Engine) -> Any:
    """The values that are served."""
    assert engine.policy is not None
    return json.loads(member(engine.policy.values.path, "policy/data.json"))


_POLICIES = 64
"""Policies of one question: more than OPA takes as one input would be refused."""


def evaluated(engine: Engine, policies: Sequence[Any], documents: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """The decisions on these inputs under each of these values, by the rules that are served."""
    query = (
        "found := [ds | some changed in input.changed;"
        " p := object.union(object.remove(input.policy, changed.names), changed.values);"
        " ds := [d | some item in input.items; d := data.admission.decision with input as item with data.policy as p]]"
    )
    assert not isinstance(engine.opa, Unavailable)
    found: list[list[Any]] = []
    first = policies[0]
    with httpx.Client(transport=httpx.HTTPTransport(uds=engine.opa.server.path), timeout=600) as client:
        for at in range(0, len(policies), _POLICIES):
            changed = [_changed(first, policy) for policy in policies[at : at + _POLICIES]]
            asked = {"policy": first, "changed": changed, "items": documents}
            reply = client.post("http://opa/v1/query", json={"query": query, "input": asked}).raise_for_status()
            found += reply.json()["result"][0]["found"]
    return found


def _changed(first: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    """What makes a policy of the first: the names to remove, and the values to put in."""
    names = [name for name in {**first, **policy} if first.get(name) != policy.get(name)]
    return {"names": names, "values": {name: policy[name] for name in names if name in policy}}


def member(archive: Path, name: str) -> bytes:
    import tarfile

    with tarfile.open(archive) as tar:
        member = next(item for item in tar if item.name.lstrip("/") == name)
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


class Faulty:
    """An OPA that fails in one way, behind the interface of what is served."""

    shared = None
    digest = None

    def __init__(self, engine: Engine, code: str | None = None, change: Any = None) -> None:
        self._real, self._code, self._change = engine.opa, code, change
        assert engine.policy is not None
        self.catalogue = engine.policy.catalogue
        self.lookups = engine.policy.lookups
        self.revisions: Revisions | None = engine.policy.revisions

    @property
    def opa(self) -> Any:
        return self

    def backend_of(self, *_: str | None) -> str | None:
        return "bubblewrap"

    def looks_up(self, point: str, host: str) -> bool:
        return bool(self._real.ask("lib/gathering/host_looked_up", {point: {"url": {"host": host}}}).defined)

    def authored(self, served: Location) -> Location:
        return served

    def release(self) -> None:
        """Nothing is held."""

    async def ask_async(self, rule: str, document: dict[str, Any]) -> Any:
        return self.ask(rule, document)

    def ask(self, rule: str, document: dict[str, Any]) -> Any:
        if self._code:
            raise DecideError("fault", remedy="none", code=self._code)
        reply = self._real.ask(rule, document)
        return replace(reply, body=self._change(reply.body))


def recorded(engine: Engine, decision_id: str) -> dict[str, Any]:
    for path in (engine.settings.state / "records").glob("decisions.*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line) if decision_id in line else {}
            if record.get("decision_id") == decision_id:
                return record
    raise AssertionError("no record of this decision")
