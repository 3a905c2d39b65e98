"""Values of policy/code.yaml: what does not fit together is told at the path of its field."""

from __future__ import annotations

from typing import Any

import pytest

from engine.values.code import Code
from tests.values.shipped import DROP, SHIPPED, errors

CONTRACT = "contracts.incident_metrics"
TABLE = "contracts.totals"


# covers: C07 C08 C38 C79
@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("hints.max_code_chars.default", 100, "hints.max_code_chars.default"),
        ("hints.max_code_chars.maximum", 2000, "hints.max_code_chars.default"),
        ("hints.exec_timeout_seconds.minimum", 3.0, "hints.exec_timeout_seconds.default"),
        ("hints.exec_timeout_seconds.maximum", 26.0, "hints.exec_timeout_seconds.maximum"),
        ("max_seconds", 10, "hints.exec_timeout_seconds.maximum"),
        ("execution.ruby", "standard", "execution.ruby"),
        (f"{CONTRACT}.fields.0.minimum", 2, f"{CONTRACT}.fields.0.minimum"),
        (f"{CONTRACT}.fields.0.maximum", "any", f"{CONTRACT}.fields.0.percent"),
        (f"{CONTRACT}.fields.0.percent.name", "sample_size", f"{CONTRACT}.fields"),
        (f"{CONTRACT}.fields.0.name", "sample_size", f"{CONTRACT}.fields"),
        (f"{CONTRACT}.echoed.+", {"name": "region", "case": "upper"}, f"{CONTRACT}.echoed"),
        (f"{CONTRACT}.echoed.+", {"name": "sample_size", "case": "as_is"}, f"{CONTRACT}.echoed"),
        (f"{CONTRACT}.echoed.1.name", "place", f"{CONTRACT}.fields.9.name"),
        (f"{CONTRACT}.answer", "{region} {weather}", f"{CONTRACT}.answer"),
        (f"{CONTRACT}.answer", "{region!r}", f"{CONTRACT}.answer"),
        (f"{CONTRACT}.answer", "{region", f"{CONTRACT}.answer"),
        (f"{CONTRACT}.streams", {"stdout_bytes": 1, "stderr_bytes": 1}, f"{CONTRACT}.streams"),
        (f"{TABLE}.streams", DROP, f"{TABLE}.streams"),
        (f"{TABLE}.answer", "{rows}", f"{TABLE}.answer"),
        (f"{TABLE}.fields.0.least", 1001, f"{TABLE}.fields.0.least"),
        (f"{TABLE}.fields.0.columns.1.name", "turnover", f"{TABLE}.fields.0.columns"),
        (f"{TABLE}.fields.0.columns.1.maximum", -1, f"{TABLE}.fields.0.columns.1.minimum"),
    ],
)
def test_inconsistent_values_are_reported_with_a_path(path: str, value: Any, where: str) -> None:
    assert where in [place for place, _ in errors("code", (path.replace(".", "/"), value))]
    Code.model_validate(SHIPPED["code"])  # the control


@pytest.mark.parametrize("name", ["minimum", "maximum", "decimals", "type", "name"])
def test_a_contract_field_without_a_required_property_is_an_error(name: str) -> None:
    assert errors("code", (f"contracts/incident_metrics/fields/0/{name}", DROP))
