"""What the rules of a decision point read of an input, found in OPA's plan of them.

A plan is the policy as a list of simple statements, after imports, helpers and comprehensions are compiled away.
Each statement is followed with values that stand for all inputs at once: a value of the policy is known, a value of
the input is known by its path only. A statement whose reads are unknown (`with`, a rule chosen by the input) ends
the search, and everything counts as read. OPA still decides; this only finds which inputs it cannot distinguish.

Source: https://www.openpolicyagent.org/docs/ir
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from engine.opa.plan_values import COMPUTED, EACH, EMPTY, Path, UnknownError, Value, by_name, constant, joined

ANSWER, OPAQUE = "answer", "opaque"
COMPARISONS = frozenset({"equal", "neq", "lt", "lte", "gt", "gte"})

_ROUNDS = 24
_TYPE_CHECKS = frozenset({f"is_{name}" for name in ("array", "boolean", "null", "number", "object", "set", "string")})
_IGNORED = frozenset(
    {"BreakStmt", "IsArrayStmt", "IsObjectStmt", "IsSetStmt", "IsUndefinedStmt", "NopStmt", "ReturnLocalStmt"}
)

Statement = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a value of the input: the function, and what stands on its other side.

    `other` is a path, else `constant`: one scalar, or None beside anything else.
    """

    by: str
    other: Path | None = None
    constant: tuple[str, Any] | None = None


@dataclass(slots=True)
class Reads:
    """What is read: each path, with its uses; `whole` are those read to their last leaf, `keys` those counted."""

    uses: dict[Path, set[Use]] = field(default_factory=dict)
    whole: set[Path] = field(default_factory=set)
    keys: set[Path] = field(default_factory=set)


class _Frame:
    """The variables of a block, all that was written to each of them, and which hold a container of their own."""

    def __init__(self, values: dict[int, Value], own: Iterable[int] = ()) -> None:
        self.values = values
        self.own = set(own)
        self.written: dict[int, Value] = {}

    def put(self, target: int, value: Value) -> None:
        self.values[target] = value
        self.written[target] = joined(self.written.get(target), value)
        self.own.discard(target)

    def make(self, target: int, value: Value) -> None:
        """A container that no other variable holds: new, or changed where it is."""
        self.put(target, value)
        self.own.add(target)

    def inner(self, values: Mapping[int, Value] = {}) -> _Frame:
        return _Frame({**self.values, **values}, self.own - values.keys())

    def after(self, inner: _Frame) -> None:
        """Go on after a block that may have ended anywhere."""
        own = {one for one in inner.own if one in self.own or one not in self.values}
        for target, value in inner.written.items():
            self.put(target, joined(self.values.get(target), value))
        self.own = own


class Plan:
    """The plan of a policy, with the values that its rules find in `data`."""

    def __init__(self, plan: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self.strings: Sequence[str] = [one["value"] for one in plan["static"]["strings"]]
        self.functions = {one["name"]: one for one in plan["funcs"]["funcs"]}
        self.entries = {one["name"]: one["blocks"] for one in plan["plans"]["plans"]}
        self.data = constant(data)

    def reads(self, entry: str, fixed: Mapping[Path, Any]) -> Reads:
        """What this entry point reads of an input that has these values at these paths. Raises UnknownError."""
        return _Search(self, {path: constant(value) for path, value in fixed.items()}).of(entry)


class _Search:
    def __init__(self, plan: Plan, fixed: Mapping[Path, Value]) -> None:
        self._plan = plan
        self._fixed = fixed
        self._results: dict[tuple[str, tuple[Value, ...]], Value | None] = {}
        self._reads = Reads()

    def of(self, entry: str) -> Reads:
        frame = _Frame({0: Value(paths=frozenset({()})), 1: self._plan.data})
        self._blocks(self._plan.entries[entry], frame)
        return self._reads

    def _blocks(self, blocks: Iterable[Any], frame: _Frame) -> None:
        """Run blocks one after the other, each of which may end early."""
        for block in blocks:
            inner = frame.inner()
            self._block(block, inner)
            frame.after(inner)

    def _block(self, block: Any, frame: _Frame) -> None:
        for one in block["stmts"]:
            if not self._statement(one["type"], one["stmt"], frame):
                return

    def _statement(self, kind: str, statement: Statement, frame: _Frame) -> bool:  # noqa: C901, PLR0912
        """Follow one statement; false if nothing after it in its block can run."""
        values, holds = frame.values, True
        match kind:
            case "DotStmt" | "CallStmt" | "LenStmt" | "AssignVarStmt" | "AssignVarOnceStmt":
                found = self._value(kind, statement, frame)
                if found is None:
                    return False
                frame.put(statement["result" if kind == "CallStmt" else "target"], found)
            case "EqualStmt" | "NotEqualStmt":
                sides = self._operand(statement["a"], frame), self._operand(statement["b"], frame)
                holds = self._compare("equal" if kind == "EqualStmt" else "neq", *sides)
            case "IsDefinedStmt":
                holds = statement["source"] in values
            case "ScanStmt":
                self._scan(statement, frame)
            case "BlockStmt":
                self._blocks(statement["blocks"], frame)
            case "NotStmt":
                self._blocks([statement["block"]], frame)
            case "ResetLocalStmt":
                values.pop(statement["target"], None)
            case "MakeArrayStmt" | "MakeObjectStmt" | "MakeSetStmt":
                frame.make(statement["target"], EMPTY)
            case "ArrayAppendStmt" | "SetAddStmt":
                self._add(kind, statement, frame)
            case "ObjectInsertStmt" | "ObjectInsertOnceStmt":
                self._insert(kind, statement, frame)
            case "ObjectMergeStmt":
                frame.put(statement["target"], joined(values.get(statement["a"]), values.get(statement["b"])))
            case "MakeNullStmt" | "MakeNumberIntStmt" | "AssignIntStmt":
                frame.put(statement["target"], constant(statement.get("value")))
            case "MakeNumberRefStmt":
                frame.put(statement["target"], constant(_number(self._plan.strings[statement["Index"]])))
            case "ResultSetAddStmt":
                self._use(values.get(statement["value"], COMPUTED), Use(ANSWER))
            case _ if kind not in _IGNORED:
                raise UnknownError(kind)
        return holds

    def _value(self, kind: str, statement: Statement, frame: _Frame) -> Value | None:
        """What a statement gives a variable; None if it is undefined for certain."""
        if kind == "CallStmt":
            return self._call(statement["func"], [self._operand(one, frame) for one in statement["args"]])
        source = self._operand(statement["source"], frame)
        if source is None:
            return None
        if kind == "DotStmt":
            key = self._operand(statement["key"], frame)
            return None if key is None else self._step(source, key)
        if kind == "LenStmt":
            return self._counted(source)
        if kind == "AssignVarOnceStmt":
            before = frame.values.get(statement["target"])
            self._compare("equal", before, source)  # OPA refuses two values
            return joined(before, source)
        return source

    def _operand(self, operand: Any, frame: _Frame) -> Value | None:
        """The value of an operand; None if it is undefined for certain."""
        if isinstance(operand, int):
            return frame.values.get(operand)
        match operand["type"]:
            case "local":
                frame.own.discard(operand["value"])  # it gets another name
                return frame.values.get(operand["value"])
            case "string_index":
                return constant(self._plan.strings[operand["value"]])
            case "bool":
                return constant(operand["value"])
        raise UnknownError(operand["type"])

    def _step(self, value: Value, key: Value) -> Value | None:
        """What stands below a key; None if nothing can."""
        self._use(key, Use("key"))
        known = key.known.value if key.scalar is not None and key.known is not None else None
        found: list[Value | None] = []
        if value.known is not None:
            beside = COMPUTED if value == self._plan.data else None  # `data.system`
            found.append(_below(value.known.value, key) or beside)
        for path in value.paths:
            below = (*path, known if isinstance(known, str) else EACH)
            self._reads.uses.setdefault(below, set())
            found.append(self._fixed.get(below, Value(paths=frozenset({below}))))
        if value.built:
            found += [value.item, *(one for name, one in value.fields if known is None or name == known)]
        if value.computed or value == EMPTY or (value.built and not any(found)):
            found.append(COMPUTED)
        left = [one for one in found if one is not None]
        return reduce(joined, left) if left else None

    def _scan(self, statement: Statement, frame: _Frame) -> None:
        """Run the block of a loop until another round writes nothing new."""
        source = frame.values.get(statement["source"])
        if source is None or (source.known is not None and not source.known.value):
            return
        item = self._step(source, COMPUTED) or COMPUTED
        for _ in range(_ROUNDS):
            before = dict(frame.values), set(frame.own)
            inner = frame.inner({statement["key"]: COMPUTED, statement["value"]: item})
            self._block(statement["block"], inner)
            frame.after(inner)
            if (frame.values, frame.own) == before:
                return
        raise UnknownError("a loop without an end")

    def _call(self, name: str, arguments: list[Value | None]) -> Value | None:
        values = [one for one in arguments if one is not None]
        if len(values) < len(arguments):
            return None
        if (function := self._plan.functions.get(name)) is None:
            return self._builtin(name, values)
        key = name, tuple(values)
        if key not in self._results:
            self._results[key] = None  # rules do not call themselves
            frame = _Frame(dict(zip(function["params"], values, strict=True)))
            self._blocks(function["blocks"], frame)
            self._results[key] = frame.values.get(function["return"])
        return self._results[key]

    def _builtin(self, name: str, values: list[Value]) -> Value | None:
        if name in COMPARISONS:
            self._compare(name, *values)
        elif name == "count":
            return self._counted(values[0])
        elif name == "object.get" and values[1].scalar is not None:
            return joined(self._step(values[0], values[1]), values[2])
        elif name not in _TYPE_CHECKS:
            constants = [one.scalar for one in values if one.scalar is not None]
            alone = constants[0] if len(values) == 2 and len(constants) == 1 else None  # noqa: PLR2004
            for one in values:
                self._use(one, Use(name, constant=alone))
        return COMPUTED

    def _compare(self, by: str, one: Value | None, other: Value | None) -> bool:
        """Record a comparison; false if it cannot hold."""
        if one is None or other is None:
            return False
        for this, that in ((one, other), (other, one)):
            if that.scalar is not None:
                for path in this.paths:  # what is no scalar differs from one, whatever it holds
                    self._reads.uses.setdefault(path, set()).add(Use(by, constant=that.scalar))
                self._use(replace(this, paths=frozenset()), Use(by))
                continue
            for path in that.paths:
                self._use(this, Use(by, path))
            if that.computed or that.built or not that.paths:
                self._use(this, Use(by))
        if one.scalar is None or other.scalar is None or by not in {"equal", "neq"}:
            return True
        numbers = {one.scalar[0], other.scalar[0]} == {"int", "float"}  # 1 and 1.0 are one number
        same = one.scalar[1] == other.scalar[1] if numbers else one.scalar == other.scalar
        return same is (by == "equal")

    def _counted(self, value: Value) -> Value:
        """The number of items or keys."""
        self._reads.keys |= value.paths
        for path in value.paths:
            self._reads.uses.setdefault(path, set())
        return COMPUTED  # of what rules built, the members of sets are read and lists have the length of what is

    def _use(self, value: Value, use: Use) -> None:
        """Record that all of a value is read."""
        for path in value.paths:
            self._reads.uses.setdefault(path, set()).add(use)
            self._reads.whole.add(path)
        for one in (*(one for _, one in value.fields), *([] if value.item is None else [value.item])):
            self._use(one, Use(use.by if use.by == ANSWER else OPAQUE))

    def _add(self, kind: str, statement: Statement, frame: _Frame) -> None:
        target = statement["array" if kind == "ArrayAppendStmt" else "set"]
        value = self._operand(statement["value"], frame) or COMPUTED
        if kind == "SetAddStmt":
            self._use(value, Use("set"))  # a set compares its members
        old = self._changed(target, frame)
        frame.make(target, replace(old, item=joined(old.item, value)))

    def _insert(self, kind: str, statement: Statement, frame: _Frame) -> None:
        key, value = (self._operand(statement[name], frame) or COMPUTED for name in ("key", "value"))
        self._use(key, Use("key"))
        old, name = self._changed(statement["object"], frame), key.known.value if key.known is not None else None
        if kind == "ObjectInsertOnceStmt" and old.built:
            self._compare("equal", self._step(old, key), value)  # OPA refuses two values
        if isinstance(name, str):
            frame.make(statement["object"], replace(old, fields=by_name({**dict(old.fields), name: value})))
        else:
            frame.make(statement["object"], replace(old, item=joined(old.item, value)))

    def _changed(self, target: int, frame: _Frame) -> Value:
        """The container that is about to change. Nobody may hold another name of it."""
        if target not in frame.own:
            raise UnknownError("a container changes after it was copied")
        return frame.values[target]


def _below(container: Any, key: Value) -> Value | None:
    if key.scalar is None or key.known is None:
        return COMPUTED if container and isinstance(container, (dict, list)) else None
    step = key.known.value
    if isinstance(container, dict) and step in container:
        return constant(container[step])
    if isinstance(container, list) and isinstance(step, float):
        return COMPUTED
    if isinstance(container, list) and isinstance(step, int) and 0 <= step < len(container):
        return constant(container[step])
    return None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
