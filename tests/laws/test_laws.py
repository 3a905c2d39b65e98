"""The laws of the design, each one generic over every case of every point, on a real OPA."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.cases import CaseFile, Runner, changed
from engine.decide import read
from engine.drive import run
from engine.engine import Engine
from engine.errors import DecideError, GatherError, Location, WorkError
from engine.facts.boundaries import BOUND_NAMES
from engine.facts.source_bundle import DOCUMENT
from engine.files import load
from engine.flow import FROM_STATE, Answer, Context, Parts, answer
from engine.model import Mode, Outcome, Permit, Result, Revisions, is_reserved
from engine.points.registry import POINTS
from engine.points.source import SourceRequest
from engine.secret_forms import SecretForms
from engine.settings import OpaLimits, ReadLimits, Settings
from engine.values import DERIVED, DOCUMENTS, derived
from engine.values.code_scan import Scan
from engine.work import Hand
from tests.conftest import BUNDLES, CASES, ROOT, case_id
from tests.laws.mutations import DROPPED, Path_, get, paths, single, unknown, with_value
from tests.processes import stop

MOST = 32
"""Inputs of one batch: one that a built-in refuses has its batch asked again in halves."""

RANK = {"deny": 0, "confirm": 1, "allow": 2}
ALLOWED = [file for file in CASES if file.case.want.outcome is Outcome.ALLOW]
DECIDED = [file for file in CASES if not any(is_reserved(code) for code in file.case.want.codes)]
ONE_EACH = [next(file for file in ALLOWED if file.case.point == point) for point in POINTS]
"""An allowed case of each point, for laws that start engines of their own."""
NARROWED = [file for file in DECIDED if file.case.want.outcome is not Outcome.ALLOW]
"""Cases whose outcome could be wider."""
ON_BUNDLES = [file for file in DECIDED if file.case.bundle is not None]

STATED_ANSWERS = {
    "export_license": "null says that nothing will be exported",
    "url": "null says that the material has no address",
    "retrieved_at": "may be absent, and asked of external material only",
    "kind": "absent says offline fixture (A05)",
}
"""Fields of a source bundle whose absence or null is an answer and not a missing fact."""


FIELDS = {
    path[-1]
    for path in paths(
        json.loads(
            json.dumps(load((BUNDLES / "external_contacts" / DOCUMENT).read_bytes(), DOCUMENT, ReadLimits()).value)
        )
    )
}
"""Every field that format 1 knows."""


COMMON = {"caller": {"via": "process", "points": []}, **{name: [] for name in FROM_STATE}}
"""Facts that every input has."""


def taken(runner: Runner, file: CaseFile) -> tuple[Engine, dict[str, Any], str]:
    """The engine of a case, its input as OPA sees it, and its outcome."""
    engine = runner.at(file)
    if file.path not in _TAKEN:
        got = runner.answer(file)
        assert got.document is not None
        _TAKEN[file.path] = (got.document, got.decision.outcome)
    return engine, *_TAKEN[file.path]


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


def context(file: CaseFile) -> Context:
    """Who asks in this case."""
    return Context(caller=file.case.caller)


def alone(file: CaseFile, runner: Runner, settings: Settings) -> Engine:
    """An engine of its own for a case: open it, then `placed`."""
    moment = runner.at(file)
    return Engine(settings, values=runner.overlay(file.case.values), now=moment._now)


def placed(engine: Engine, file: CaseFile) -> None:
    """Put an open engine, new and once, into the world and the state of a case."""
    file.case.state.write(parts(engine).store())
    engine.parts = replace(parts(engine), world=file.case.world.over(parts(engine).world))


def parts(engine: Engine) -> Parts:
    assert engine.parts is not None
    return engine.parts


def enforced(engine: Engine, file: CaseFile, request: Any, hand: Hand | None = None) -> Answer:
    """The request of a case, enforced on the path that every point has."""
    return run(answer(POINTS[file.case.point], request, Mode.ENFORCE, parts(engine), context(file), hand))


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
        gathered = point.gather(SourceRequest(path=str(bundle), digest=None), parts(engine).world)
    except GatherError:
        return None
    with closing(gathered.opened):
        return gathered.input.model_dump(mode="json", exclude_none=True) | COMMON


# covers: H12.1-2
@pytest.mark.parametrize("file", NARROWED, ids=case_id)
def test_1_no_fact_missing_or_of_another_type_widens(file: CaseFile, runner: Runner) -> None:
    engine, original, outcome = taken(runner, file)
    mutants = [(path, value, mutant) for path, value, mutant in single(original) if path != ("point",)]
    assert len(mutants) > 10
    for (path, value, _), got in zip(mutants, outcomes(engine, [m for *_, m in mutants]), strict=True):
        assert RANK[got] <= RANK[outcome], f"{path} as {value!r}"


# covers: A09.1
@pytest.mark.parametrize("file", ON_BUNDLES, ids=case_id)
def test_1_no_field_of_a_source_bundle_missing_or_of_another_type_widens(
    file: CaseFile, runner: Runner, tmp_path: Path
) -> None:
    engine, _, outcome = taken(runner, file)
    bundle, original = document(file, tmp_path / "bundle")
    read = []
    for path, value, mutant in single(original):
        found = facts(engine, bundle, mutant)
        if found is not None:
            read.append((path, value, found))
    for (path, value, found), got in zip(read, outcomes(engine, [f for *_, f in read]), strict=True):
        if found["errors"]:
            assert got == "deny", f"{path} as {value!r}"
        elif value is DROPPED or value is None:
            if path[-1] not in FIELDS:
                continue  # the unknown field that was wrong is gone
            assert path[-1] in STATED_ANSWERS, f"{path} as {value!r} is a legal document"
            assert path[-1] != "kind" or RANK[got] <= RANK[outcome], f"{path} as {value!r}"
        else:
            assert RANK[got] <= RANK[outcome], f"{path} as {value!r}"


UNDECLARED = {
    "runner_request": {
        *("agent", "sandbox", "backend", "sandbox_permission", "sandboxPermission", "network", "filesystem"),
        *("tools", "code", "mcp_servers", "mcpServers", "command", "uri", "tool_callback"),
    },
    "runner_uri": {"override", "inherited"},
    "tool_result": {"error_mode", "message", "details", "looked_at", "header"},
    "media": {"bytes"},
    "code_output": {"artifacts"},
    "subagent": {"child_conversation_id", "limit_turns", "timeout_seconds"},
    "mcp": {"command", "definitions", "env", "url"},
    "sandbox": {"backend", "command", "tighten", *BOUND_NAMES},
    "code_execution": {"profile", "task", "attempt", "tighten", *BOUND_NAMES},
}
"""Fields of requests whose absence, null or blank asks for less, or for the default, and is an answer.

A boundary that is not declared is none to enforce (D59), a tool that is not carried needs no permission,
and an address that is cleared is the default (D43). A mode that is not stated is the safe one, and what an
error does not say is not shown (B30). Media of a size that nobody declared is held to the limit while it is
fetched (B40). Whoever asks for no number of turns and no time gets those of the policy (B19, B25),
and to start a subagent is to name none. Whoever states no lower limit of a sandbox gets that of its profile,
who names no backend relies on none, and without a command none may run. Code runs in the profile of its language
unless another one is named, and who names no task has tried nothing before (C63). What the policy sees of each is a
fact, and the law on facts holds without exception.
"""


PAYLOADS = {
    "code_output": {"artifacts"},
    "mcp": {"definitions", "env"},
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

OPEN = {**{name: {"action", "policy_hints"} for name in PROPOSED}, "code_output": {"request"}}
"""Fields of requests that hold what others wrote: what is unknown in it has a code of its own, or is no fact (C78)."""


def answered(point: str, path: Path_, value: Any) -> bool:
    """Whether a change to an action or its hints is one that the rows name an answer.

    Hints that are no object, and a number or list that cannot be read, are none, and what is not hinted is the
    default (C02, C05, C07, C08); no hint of the network asks for none (C77), but every other value of it must not
    widen. An empty payload is an object, and without the field that no action has the action has none.
    """
    if point not in PROPOSED:
        return False
    match path:
        case ("policy_hints",) | ("policy_hints", "max_code_chars" | "exec_timeout_seconds" | "allowed_languages"):
            return True
        case ("policy_hints", "network_access") | ("action", "environment"):
            return value is DROPPED
        case ("action", "input_payload"):
            return bool(value == {})
    return False


def payload(point: str, path: Sequence[str | int], *, itself: bool = False) -> bool:
    """Whether a path leads into a payload, or with `itself` to it."""
    return any(part in PAYLOADS.get(point, ()) for part in (path if itself else path[:-1]))


# covers: H12.1-2
@pytest.mark.parametrize("file", [file for file in NARROWED if file.case.bundle is None], ids=case_id)
def test_1_no_field_of_a_request_missing_or_of_another_type_widens(file: CaseFile, runner: Runner) -> None:
    engine, _, outcome = taken(runner, file)
    for path, value, mutant in single(file.case.request):
        if value is None and path[-1] in STATED_ANSWERS | {"digest": ""}:
            continue
        if value in (DROPPED, None, "") and path[-1] in UNDECLARED.get(file.case.point, ()):
            continue
        if payload(file.case.point, path, itself=value in ([], {})) or answered(file.case.point, path, value):
            continue
        got = engine.check(file.case.point, mutant, context(file)).decision.outcome
        assert RANK[got] <= RANK[outcome], f"{path} as {value!r}"


@hypothesis_settings(max_examples=150)
@given(data=st.data())
def test_1_no_combination_widens(data: st.DataObject, runner: Runner) -> None:
    file = data.draw(st.sampled_from(NARROWED))
    engine, original, outcome = taken(runner, file)
    mutant: Any = original
    for _ in range(data.draw(st.integers(2, 5))):
        if not (fields := [path for path in paths(mutant) if path != ("point",)]):
            break
        path = data.draw(st.sampled_from(fields))
        present = get(mutant, path)
        wrong = [value for value in (DROPPED, None, True, 0, "", [], {}) if type(value) is not type(present)]
        mutant = with_value(mutant, path, data.draw(st.sampled_from(wrong)))
    assert RANK[outcomes(engine, [mutant])[0]] <= RANK[outcome]


# covers: H22.1
@pytest.mark.parametrize("file", [file for file in ALLOWED if file.case.bundle], ids=case_id)
def test_2_an_unknown_field_is_refused_in_a_source_bundle(file: CaseFile, runner: Runner, tmp_path: Path) -> None:
    engine, _, _ = taken(runner, file)
    bundle, original = document(file, tmp_path / "bundle")
    found = [facts(engine, bundle, mutant) for _, mutant in unknown(original)]
    assert set(outcomes(engine, [f for f in found if f is not None])) == {"deny"}


# covers: H22.3
@pytest.mark.parametrize("file", ALLOWED, ids=case_id)
def test_2_an_unknown_field_is_refused_in_a_request(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    for path, mutant in unknown(runner.request(file)):
        if payload(file.case.point, path, itself=True) or (path and path[0] in OPEN.get(file.case.point, ())):
            continue
        got = engine.check(file.case.point, mutant, context(file))
        assert got.decision.outcome is Outcome.DENY, path
        assert got.decision.findings[0].code == "engine.request_invalid"


_COARSE = 4
"""Parts of a path into derived values, which nobody edits: a lookup, a policy, a section of it."""


@pytest.mark.parametrize("name", sorted({*DOCUMENTS, *DERIVED}))
def test_3_no_value_removed_widens(name: str, runner: Runner, tmp_path: Path) -> None:
    changed_too = {name, *DERIVED} if name == "tools" else {name}  # what follows from it
    asked = [file for file in NARROWED if not file.case.values and changed_too & _read_by(file.case.point)]
    assert asked
    cases = [taken(runner, file) for file in asked]
    engine = runner.engine({})
    values = _values(engine)
    named = json.dumps([document for _, document, _ in cases])
    groups: dict[str | None, list[Path_]] = {}
    for path in paths({name: values[name]}):
        if path[:2] == ("licenses", "licenses") and len(path) > 2 and str(path[2]) not in named:
            continue
        if name in DERIVED and len(path) > _COARSE:
            continue
        own = path[2] if len(path) > 2 and name in {"budgets", "levels"} and path[2] in POINTS else None
        groups.setdefault(None if own is None else str(own), []).append(path)
    assert groups
    for own, removed in groups.items():
        affected = [case for case in cases if own in {None, case[1]["point"]}]
        found_with = [(path, policy) for path in removed if (policy := _without(values, path)) is not None]
        found = _evaluate(engine, tmp_path, [one for _, one in found_with], [input_ for _, input_, _ in affected])
        for (path, _), decisions in zip(found_with, found, strict=True):
            for (_, _, outcome), got in zip(affected, decisions, strict=True):
                assert RANK[got["outcome"]] <= RANK[outcome], f"without {'.'.join(map(str, path))}"


def test_3_with_all_values_the_cases_are_decided_as_they_are(runner: Runner, tmp_path: Path) -> None:
    """Positive control: what evaluates the values of law 3 says what the served policy says."""
    cases = [taken(runner, file) for file in DECIDED if not file.case.values]
    engine = runner.engine({})
    found = _evaluate(engine, tmp_path, [_values(engine)], [document for _, document, _ in cases])[0]
    assert [got["outcome"] for got in found] == [str(outcome) for *_, outcome in cases]


def _values(engine: Engine) -> Any:
    """The values that are served."""
    assert engine.policy is not None
    return json.loads(_member(engine.policy.values.path, "policy/data.json"))


@cache
def _read_by(point: str) -> set[str]:
    """The values that the rules of a point can read: references are static, the build sees to that."""
    rules = ROOT / "rego" / "admission"
    waiting = [*(rules / "requirements" / point).glob("*.rego"), *(rules / "requirements" / "common").glob("*.rego")]
    waiting += [rules / "limits" / f"{point}.rego", rules / "lib" / "approval.rego"]
    seen: set[Path] = set()
    named = {"levels", "approvals"}  # what the generated modules read
    while waiting:
        file = waiting.pop()
        if file in seen or file.name.endswith("_test.rego"):
            continue
        seen.add(file)
        text = file.read_text(encoding="utf-8")
        named |= set(re.findall(r"\bdata\.policy\.([a-z_]+)", text))
        waiting += [rules / "lib" / f"{name}.rego" for name in re.findall(r"\bdata\.admission\.lib\.([a-z_]+)", text)]
        assert not re.search(r"\bdata\.admission\.(requirements|limits)\b", text.partition("\n")[2]), file
    return named


def test_the_values_that_a_point_reads_are_known() -> None:
    """Positive control: no value is left out of law 3 because nobody is seen to read it."""
    read = set().union(*(_read_by(point) for point in POINTS))
    assert {*DOCUMENTS, *DERIVED} <= read


def _without(values: Any, path: Path_) -> Any:
    """The values without one, as a build would make them: what follows from documents follows from these."""
    policy = with_value(values, path, DROPPED)
    if path[0] != "tools" or len(path) == 1:
        return policy
    try:
        DOCUMENTS["tools"].model_validate_json(json.dumps(policy["tools"]))
    except ValidationError:
        return None  # no build would serve it
    return {**policy, **derived(policy)}


def _evaluate(engine: Engine, folder: Path, policies: list[Any], items: list[Any]) -> list[list[Any]]:
    """Every item under every policy, by `opa eval` on the served rules."""
    from engine.opa.binary import find_binary

    assert engine.policy is not None
    query = (
        "[ds | some p in input.policies; ds := [d | some item in input.items;"
        " d := data.admission.decision with input as item with data.policy as p]]"
    )
    (folder / "input.json").write_text(json.dumps({"policies": policies, "items": items}), encoding="utf-8")
    done = subprocess.run(
        [find_binary().path, "eval", "-b", engine.policy.rules.path, "-i", folder / "input.json", "-f", "json", query],
        capture_output=True, check=True, env={},
    )  # fmt: skip
    result: list[list[Any]] = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return result


def _member(archive: Path, name: str) -> bytes:
    import tarfile

    with tarfile.open(archive) as tar:
        member = next(item for item in tar if item.name.lstrip("/") == name)
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


class _Faulty:
    """An OPA that fails in one way, behind the interface of what is served."""

    def __init__(self, engine: Engine, code: str | None = None, change: Any = None) -> None:
        self._real, self._code, self._change = engine.opa, code, change
        assert engine.policy is not None
        self.catalogue = engine.policy.catalogue
        self._arguments = engine.policy.argument_types
        self._fields = engine.policy.output_fields
        self._carried = engine.policy.carried_fields
        self._contracts = engine.policy.contracts
        self.revisions: Revisions | None = engine.policy.revisions

    @property
    def opa(self) -> Any:
        return self

    def budgets(self, _: str) -> dict[str, int]:
        return {}

    quotas = budgets

    def argument_types(self, tool: str) -> dict[str, str]:
        return self._arguments.get(tool, {})

    def output_fields(self, contract: str) -> tuple[str, ...]:
        return self._fields.get(contract, ())

    def carried_fields(self, contract: str) -> tuple[str, ...]:
        return self._carried.get(contract, ())

    def contract(self, role: str) -> str:
        return self._contracts.get(role, "")

    def backend_of(self, *_: str | None) -> str | None:
        return "bubblewrap"

    def probe_seconds(self) -> int:
        return 60

    def kind_without_origin(self) -> str | None:
        return "fixture"

    def secret_forms(self) -> SecretForms:
        return SecretForms()

    def looks_up(self, host: str) -> bool:
        return bool(self._real.ask("lib/gathering/host_looked_up", {"media": {"url": {"host": host}}}).defined)

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


GARBAGE = {
    "undefined": lambda body: {"provenance": body["provenance"]},
    "null": lambda body: body | {"result": None},
    "text": lambda body: body | {"result": "allow"},
    "true": lambda body: body | {"result": True},
    "empty": lambda body: body | {"result": {}},
    "outcome_only": lambda body: body | {"result": {"outcome": "allow"}},
    "other_outcome": lambda body: body | {"result": body["result"] | {"outcome": "permit"}},
    "allow_with_a_denying_finding": lambda body: (
        body
        | {"result": {"outcome": "allow", "limits": {}, "findings": [{"code": "x", "level": "deny", "subject": None}]}}
    ),
    "allow_without_limits": lambda body: body | {"result": {"outcome": "allow", "findings": []}},
    "deny_without_findings": lambda body: body | {"result": {"outcome": "deny", "findings": []}},
    "unknown_code": lambda body: (
        body | {"result": {"outcome": "deny", "findings": [{"code": "nobody_knows", "level": "deny", "subject": None}]}}
    ),
    "reserved_code": lambda body: (
        body
        | {"result": {"outcome": "deny", "findings": [{"code": "engine.opa_error", "level": "deny", "subject": None}]}}
    ),
    "more_fields": lambda body: body | {"result": body["result"] | {"approved": True}},
}


# covers: H13.3 H23
@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("file", ONE_EACH, ids=case_id)
def test_4_a_malformed_answer_is_a_deny_with_a_reserved_code(file: CaseFile, name: str, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    broken = replace(parts(engine), serving=lambda: _Faulty(engine, change=GARBAGE[name]))
    got = run(answer(POINTS[file.case.point], runner.request(file), Mode.ENFORCE, broken, context(file)))
    assert got.decision.outcome is Outcome.DENY
    assert is_reserved(got.decision.findings[0].code)
    assert got.exit == 4
    assert _recorded(engine, got.decision.decision_id)["outcome"] == "deny"


# covers: H13.1
@pytest.mark.parametrize("file", ONE_EACH, ids=case_id)
def test_4_a_dead_opa_is_a_deny_with_a_reserved_code(
    file: CaseFile, runner: Runner, shared_settings: Settings, tmp_path: Path
) -> None:
    own = replace(shared_settings, state=tmp_path / "state", opa=OpaLimits(answer_seconds=0.5))
    with alone(file, runner, own) as engine:
        placed(engine, file)
        request = runner.request(file)
        assert enforced(engine, file, request).decision.outcome is Outcome.ALLOW
        assert engine.opa.pid is not None  # type: ignore[union-attr]
        stop(engine.opa.pid)  # type: ignore[union-attr]
        slow = enforced(engine, file, request)
        os.kill(engine.opa.pid, signal.SIGKILL)  # type: ignore[union-attr]
        dead = enforced(engine, file, request)
    assert [slow.decision.findings[0].code, slow.exit] == ["policy_unavailable", 4]
    assert [dead.decision.findings[0].code, dead.exit] == ["policy_unavailable", 4]
    for got in (slow, dead):
        assert got.decision.outcome is Outcome.DENY
        assert _recorded(engine, got.decision.decision_id)["findings"][0]["code"] == got.decision.findings[0].code


# covers: H11.1
@pytest.mark.parametrize("file", ONE_EACH, ids=case_id)
def test_5_without_a_record_nothing_is_allowed_and_nothing_runs(
    file: CaseFile, runner: Runner, shared_settings: Settings, tmp_path: Path
) -> None:
    ran: list[Permit] = []

    def hand(permit: Permit, _: Any) -> Result:
        ran.append(permit)
        return Result("done", {})

    request = runner.request(file)
    good = replace(shared_settings, state=tmp_path / "good")
    with alone(file, runner, good) as engine:
        placed(engine, file)
        assert enforced(engine, file, request, hand).decision.outcome is Outcome.ALLOW
    assert len(ran) == 1  # the control: with a record it does run
    bad = replace(shared_settings, state=tmp_path / "bad")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "records").write_text("a file where the folder should be")
    with alone(file, runner, bad) as engine:
        placed(engine, file)
        got = enforced(engine, file, request, hand)
    assert got.decision.outcome is Outcome.DENY
    assert got.decision.findings[0].code.startswith("engine.record_")
    assert got.exit == 4
    assert len(ran) == 1


# covers: H23.4
@pytest.mark.parametrize("file", ALLOWED, ids=case_id)
def test_6_a_limit_missing_unknown_or_of_another_type_is_refused(file: CaseFile, runner: Runner) -> None:
    engine, original, _ = taken(runner, file)
    assert engine.policy is not None
    point, catalogue = POINTS[file.case.point], engine.policy.catalogue
    good = engine.opa.ask("decision", original)
    limits = good.result["limits"]
    mutants = [mutant for _, _, mutant in single(limits)] + [mutant for _, mutant in unknown(limits)]
    assert mutants
    for mutant in [None, *mutants]:
        reply = replace(good, body={"result": good.result | {"limits": mutant}})
        try:
            found = read(point, reply, catalogue).limits
        except DecideError as error:
            assert error.code == "engine.limit_unenforceable"  # noqa: PT017  (some mutants are legal limits)
        else:
            # an empty text is of the right type: what comes out is exactly what the policy said
            assert found is not None
            assert found.model_dump(mode="json") == mutant


# covers: A24.3 H23.4
@pytest.mark.parametrize("file", ON_BUNDLES, ids=case_id)
def test_6_a_boundary_that_was_not_shown_is_refused(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    real = parts(engine)
    held = real.world.boundaries()
    for boundaries in ((), tuple(boundary.model_copy(update={"enforced": False}) for boundary in held)):
        world = replace(real.world, boundaries=lambda found=boundaries: found)  # type: ignore[misc]
        got = run(
            answer(
                POINTS[file.case.point], runner.request(file), Mode.ENFORCE, replace(real, world=world), context(file)
            )
        )
        assert got.decision.outcome is Outcome.DENY
    assert all(boundary.enforced for boundary in held)  # the control


def test_6_a_limit_beyond_the_machine_is_refused_even_when_the_policy_allows(runner: Runner) -> None:
    file = next(file for file in ALLOWED if file.case.bundle)
    engine, _, _ = taken(runner, file)
    real = parts(engine)
    calls = iter([real.world.boundaries(), ()])  # shown while gathering, gone when enforcing
    world = replace(real.world, boundaries=lambda: next(calls))
    got = run(answer(POINTS["source"], runner.request(file), Mode.ENFORCE, replace(real, world=world), context(file)))
    assert [finding.code for finding in got.decision.findings] == ["engine.limit_unenforceable"]


@pytest.mark.parametrize("file", DECIDED, ids=case_id)
def test_7_one_by_one_and_again_gives_the_same_bytes(file: CaseFile, runner: Runner) -> None:
    engine = runner.at(file)
    fixed = replace(parts(engine), new_id=lambda: "0" * 32)
    twice = [
        run(answer(POINTS[file.case.point], runner.request(file), Mode.CHECK, fixed, context(file))) for _ in range(2)
    ]
    assert twice[0].decision.model_dump_json() == twice[1].decision.model_dump_json()


def test_7_one_by_one_and_in_a_batch_agree(runner: Runner) -> None:
    cases = [taken(runner, file) for file in DECIDED if not file.case.values]
    engine = cases[0][0]
    documents = [document for _, document, _ in cases]
    one_by_one = [engine.opa.ask("decision", document).result for document in documents]
    assert engine.opa.ask("decisions", {"items": documents}).result == one_by_one


@pytest.mark.parametrize("point", POINTS)
def test_7_the_served_archive_and_the_sources_agree(point: str, runner: Runner, tmp_path: Path) -> None:
    """Every requirement asked by itself, by `opa eval` on the files as written, gives the served findings.

    A finding may be hidden, but only behind another of those its requirement names in `after`.
    """
    cases = [taken(runner, file) for file in DECIDED if not file.case.values and file.case.point == point]
    engine = cases[0][0]
    assert engine.policy is not None
    requirements = engine.policy.catalogue.points[point].requirements
    documents = [document for _, document, _ in cases]
    for document, held in zip(documents, _by_hand(engine, point, documents, tmp_path), strict=True):
        served = {
            (found["code"], found["subject"])
            for found in engine.opa.ask("decision", document).result["findings"]
            if found["code"] in requirements
        }
        refused = {(code, subject) for code, subject in held if code in requirements}
        assert served <= refused
        for code, subject in refused - served:
            assert set(requirements[code].after) & {other for other, _ in refused}, (code, subject)


def _by_hand(engine: Engine, point: str, documents: list[Any], folder: Path) -> list[list[list[Any]]]:
    from engine.opa.binary import find_binary

    assert engine.policy is not None
    module = "package by_hand\n\nimport future.keywords.not\n\n"
    for code, one in engine.policy.catalogue.points[point].requirements.items():
        rule = f"data.admission.requirements.{one.point}.{one.topic}.{one.rule}"
        if one.each is None:
            module += f'refused contains ["{code}", null] if not {rule} == true\n\n'
        else:
            name = one.each.rpartition(".")[2]
            module += (
                f'refused contains ["{code}", concat("/", ["{name}", object.get(item, "id", sprintf("#%d", [i]))])] '
                f"if {{\n"
                f"\tsome i, item in input.{one.each}\n\tnot {rule}{'(item)' if one.arity else ''} == true\n}}\n\n"
            )
    (folder / "by_hand.rego").write_text(module, encoding="utf-8")
    values = {"policy": json.loads(_member(engine.policy.values.path, "policy/data.json"))}
    (folder / "values.json").write_text(json.dumps(values), encoding="utf-8")
    (folder / "input.json").write_text(json.dumps(documents), encoding="utf-8")
    query = "[r | some item in input; r := data.by_hand.refused with input as item]"
    done = subprocess.run(
        [find_binary().path, "eval", "-d", ROOT / "rego", "-d", folder / "by_hand.rego", "-d", folder / "values.json",
         "-i", folder / "input.json", "-f", "json", query],
        capture_output=True, check=True, env={},
    )  # fmt: skip
    result: list[list[list[Any]]] = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return result


def test_9_no_policy_value_stands_in_python() -> None:
    values = _policy_words()
    assert {"MIT", "CC-BY-4.0", "artifact_subdir"} <= values  # the control: the words are found in policy/
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
        assert not wrong, f"{path.relative_to(ROOT)} holds the policy values {sorted(wrong)}"


_SHARED_WORDS: dict[str, set[str]] = {
    "adapters/artifacts.py": {"artifact_subdir"},  # the boundary that this adapter was shown to hold
    "adapters/runner.py": {"https"},  # how to connect to what the limits name
    "adapters/sandbox/arguments.py": {"bin"},  # a folder below /usr
    "adapters/sandbox/cgroup.py": {"ascii", "1", "/proc/"},  # how the kernel's files are read
    "adapters/sandbox/cpu.py": {"ascii"},  # as cgroup.py
    "adapters/sandbox/handshake.py": {"/proc/"},  # as cgroup.py
    "adapters/sandbox/inside.py": {"main.py"},  # what traces of code name
    "adapters/sandbox/launcher.py": {"main.py", "javascript", "python"},  # which interpreter runs a language
    "adapters/sandbox/machine.py": {"filter"},  # of system calls
    "adapters/sandbox/gvisor_probe.py": {"1", "python", "/proc/"},  # what its probe looks at
    "adapters/sandbox/probe/acts.py": {"1", "python", "/proc/"},  # what a probe looks at
    "adapters/sandbox/report.py": {"ascii"},  # how refused names are made safe
    "adapters/sandbox/user.py": {"ascii", "1", "/proc/"},  # as cgroup.py
    "engine/api/authzen.py": {"https"},  # the scheme of the engine's own address
    "engine/api/openapi.py": {"Apache-2.0", "text/plain"},  # the engine's own license, and type of its metrics
    "engine/api/server.py": {"https"},  # as authzen.py
    "engine/api/tracing.py": {"https"},  # the scheme of the collector that the operator names
    "engine/cli/doctor.py": {"python"},  # a line of its report
    "engine/cli/formats/sarif.py": {"region"},  # a field of SARIF
    "engine/cli/tool_changes.py": {"off", "{cwd}/"},  # plain English; as tool_checks.py
    "engine/cli/tool_list.py": {"denied"},  # plain English
    "engine/facts/code_scan.py": {"javascript", "python", "wasm"},  # the languages that there are scanners for
    "engine/facts/code_scan_text.py": {"dunder"},  # a kind of text that a scan tells apart
    "engine/facts/code_scan_items.py": {"module"},  # a kind of import
    "engine/facts/javascript_scan.py": {
        *("constructor", "javascript", "member_variable", "property", "prototype", "this"),  # what a tree calls things
        "input",  # the reader that the sandbox brings
    },
    "engine/facts/javascript_scan_imports.py": {"arguments", "getBuiltinModule", "module", "property", "require"},
    "engine/facts/python_scan_strings.py": {"format"},  # as code_scan_text.py
    "engine/facts/python_scan.py": {"format", "input", "python"},  # the reader of the input, and what fills text in
    "engine/facts/proposal_text.py": {"javascript", "python", "shell", "wasm"},  # languages of fenced blocks
    "engine/facts/proposals.py": {"python", "shell"},  # what brings a command or code
    "engine/facts/addresses.py": {"100.64.0.0/10"},  # what `shared` means there, by RFC 6598
    "engine/facts/run_request.py": {"assistant"},  # a role of messages
    "engine/facts/hosts.py": {  # which numbers in a text are taken for addresses, by RFC 1122, 1918 and 3927
        *("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
    },
    "engine/policy_bundle/sources.py": {"README.md"},  # the one file that may stand beside rules and values
    "engine/facts/media_types.py": {  # what a type is known by; which ones are admitted is a value
        *("application/pdf", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm"),
        *("image/gif", "image/jpeg", "image/png", "image/webp"),
    },
    "engine/opa/build.py": {"local", "off"},  # words of the Go toolchain
    "engine/opa/server.py": {"/proc/"},  # where the kernel tells about processes
    "engine/points/source.py": {"reading"},  # what people are told while they wait
    "engine/policy_bundle/syntax.py": {"head"},  # of a rule
    "engine/policy_bundle/bodies.py": {"head"},  # as syntax.py
    "engine/points/artifact.py": {"passed"},  # a fact of a check
    "engine/cli/record.py": {"head"},  # of the chain
    "engine/cli/doctor_sandbox.py": {
        "1",
        "javascript",
        "python",
    },  # what the kernel says; the interpreters that are looked for
    "engine/facts/wasm_scan.py": {"wasm"},  # as code_scan.py
    "adapters/sandbox/wasm.py": {"wasm"},  # the one language of this backend
    "adapters/sandbox/wasm_probe.py": {"1"},  # what its probe looks at
    "adapters/sandbox/probe/watch.py": {"1"},  # as probe/acts.py
    "adapters/sandbox/probe/control.py": {"main.py"},  # as inside.py
    "adapters/sandbox/probe/trial.py": {"python"},  # as probe/acts.py
    "engine/values/tool_checks.py": {"{cwd}/"},  # how paths below the working folder are written
}
"""Words of a file that are a policy value as well, with their reason."""


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
        {word for word in found if " " not in word} - vocabulary - {*POINTS, *DOCUMENTS, "none", "*"}
    )  # plain English


_SCAN = ("code", "scan")
"""Names of Python and JavaScript themselves, such as `list`: ordinary words but where code is scanned."""

_ORDINARY = {_SCAN, ("tools", "words_without_hosts")}
"""Sections of names that are ordinary words as well, such as the programs `log`, `show` and `sleep`."""


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


def test_10_without_the_requirements_nothing_is_allowed(
    runner: Runner, shared_settings: Settings, tmp_path: Path
) -> None:
    rego = tmp_path / "rego"
    shutil.copytree(ROOT / "rego", rego, ignore=shutil.ignore_patterns("requirements"))
    own = replace(shared_settings, rego=rego, state=tmp_path / "state")
    with Engine(own) as engine:
        world = parts(engine).world
        for file in ONE_EACH:
            engine.parts = replace(parts(engine), world=file.case.world.over(world))
            got = enforced(engine, file, runner.request(file))
            assert got.decision.outcome is Outcome.DENY, file.path
            assert got.exit == 5
            assert _recorded(engine, got.decision.decision_id)["outcome"] == "deny"


@pytest.mark.parametrize("file", ALLOWED, ids=case_id)
def test_10_every_decision_asks_opa(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    deaf = replace(parts(engine), serving=lambda: _Faulty(engine, code="policy_unavailable"))
    got = run(answer(POINTS[file.case.point], runner.request(file), Mode.ENFORCE, deaf, context(file)))
    assert got.decision.outcome is Outcome.DENY


def test_a_dry_run_never_gives_a_permit(runner: Runner) -> None:
    ran: list[Permit] = []

    def hand(permit: Permit, _: Any) -> Result:
        ran.append(permit)
        return Result("done", {})

    file = next(file for file in ALLOWED if file.case.bundle)
    engine, _, _ = taken(runner, file)
    for mode in (Mode.CHECK, Mode.ENFORCE):
        got = run(answer(POINTS["source"], runner.request(file), mode, parts(engine), Context(), hand))
        assert got.decision.outcome is Outcome.ALLOW
        assert len(ran) == (mode is Mode.ENFORCE)  # the control: enforced, it runs


def test_a_forged_permit_is_refused() -> None:
    limits = POINTS["source"].limits
    forged = Permit("id", "source", "sha256:" + "0" * 64, None, object())  # type: ignore[arg-type]
    with pytest.raises(WorkError) as caught:
        forged.demand("source", "sha256:" + "0" * 64, limits)
    assert caught.value.code == "engine.permit_missing"


def _recorded(engine: Engine, decision_id: str) -> dict[str, Any]:
    for path in (engine.settings.state / "records").glob("decisions.*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line) if decision_id in line else {}
            if record.get("decision_id") == decision_id:
                return record
    raise AssertionError("no record of this decision")
