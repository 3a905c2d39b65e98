"""JavaScript runs once the policy admits it to execution; nothing else has to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.code.conftest import golden
from tests.facilities import needs

pytestmark = needs("bubblewrap", "node")

_CODE = """
const { transactions, incident_id, region } = JSON.parse(input());
const share = (of) => transactions.filter(of).length / transactions.length;
const latencies = transactions.map((row) => row.latency_ms).sort((one, other) => one - other);
console.log(JSON.stringify({
  failed_payment_rate: share((row) => row.status === 'failed'),
  affected_checkout_share: share((row) => row.status === 'failed'),
  chargeback_alerts: transactions.filter((row) => row.chargeback).length,
  incident_severity: 'P1', eta_minutes: 45, sample_size: transactions.length,
  avg_latency_ms: latencies.reduce((sum, one) => sum + one, 0) / latencies.length,
  p95_latency_ms: 187.0, incident_id, region,
}));
"""


# covers: C71
def test_an_action_runs_where_policy_admits_its_language(opening: Callable[..., Any]) -> None:
    document = golden(_CODE, action={"language": "javascript", "entrypoint": "main.js"})
    values = ("code.execution.javascript=standard", "code.entrypoints=[main.js, main.py]")
    with opening("admitted", values=values) as bench:
        done = bench.run(document)
    assert done.ok, done.document
    metrics = done.document["aggregate"]["metrics"]
    assert (metrics["failed_payment_rate"], metrics["avg_latency_ms"], metrics["sample_size"]) == (0.033333, 167.0, 60)
    assert done.document["execution"]["language"] == "javascript"
