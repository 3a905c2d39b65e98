"""What rules may call: everything OPA has but clocks, chance, the network and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORBIDDEN = frozenset(
    {
        "http.send",
        "internal.print",
        "io.jwt.decode_verify",
        "io.jwt.encode_sign",
        "io.jwt.encode_sign_raw",
        "json.match_schema",
        "json.verify_schema",
        "net.lookup_ip_addr",
        "opa.runtime",
        "print",
        "providers.aws.sign_req",
        "rand.intn",
        "rego.metadata.chain",
        "rego.metadata.rule",
        "rego.parse_module",
        "time.now_ns",
        "trace",
        "uuid.rfc4122",
    }
)
"""Nondeterministic, reaching out of OPA, or gone from served rules, as metadata and prints are."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types a built-in takes and gives: `number`, `string`, … or `any`."""

    arguments: tuple[str, ...]
    result: str


def allowed(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities without what is forbidden, for `opa check --capabilities`."""
    kept = [one for one in capabilities["builtins"] if one["name"] not in FORBIDDEN]
    return {**capabilities, "builtins": kept, "allow_net": []}


def signatures(capabilities: Mapping[str, Any]) -> dict[str, Signature]:
    """Every built-in by name."""
    return {one["name"]: _signature(one["decl"]) for one in capabilities["builtins"]}


def _signature(declaration: Mapping[str, Any]) -> Signature:
    return Signature(tuple(_type(one) for one in declaration.get("args", ())), _type(declaration.get("result", {})))


def _type(declared: Mapping[str, Any]) -> str:
    """One name for a type. Numbers or sets count as numbers: no fact is a set, JSON has none."""
    kinds = {one.get("type") for one in declared.get("of", ())} if declared.get("type") == "any" else None
    return "number" if kinds == {"number", "set"} else str(declared.get("type", "any"))
