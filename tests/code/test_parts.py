"""Parts of the code gateway that are shown on every machine: they need no sandbox."""

from __future__ import annotations

import hashlib
import json
import time

import pytest

from admission_adapters.cuts import printed
from engine.code.program import snippet
from tests.code.conftest import CODE, GOLDEN
from tests.conftest import ROOT


# covers: C52.1-3
def test_the_fixture_is_the_one_of_the_seed() -> None:
    assert (ROOT / "fixtures/code/incident_metrics.py").read_text(encoding="utf-8") == CODE
    assert len(CODE) == 1229
    full = hashlib.sha256(CODE.encode()).hexdigest()
    assert full == "47a5c01dd74664c73c1ace4922a5c4382c78824bdb9e5f91d76b7e454a95e3f0"
    rows = GOLDEN["action"]["input_payload"]["transactions"]
    assert [row["transaction_id"] for row in rows] == [f"txn_{number:03d}" for number in range(1, 61)]
    assert [index for index, row in enumerate(rows) if row["status"] == "failed"] == [7, 34]
    assert [index for index, row in enumerate(rows) if row["chargeback"]] == [34]
    assert all(
        row["latency_ms"] == 150 + index % 40 + (25 if index in {7, 34} else 0) for index, row in enumerate(rows)
    )


@pytest.mark.full
def test_a_large_payload_is_redacted_within_seconds() -> None:
    payload = json.dumps({"rows": [f"customer {number}" for number in range(200_000)]})
    started = time.process_time()
    assert snippet("no customer 199999 here" + " " * 4_000, "", payload) == "no [payload] here"
    assert time.process_time() - started < 30  # of this process alone; a look at each in turn takes minutes


# covers: C61
def test_the_last_line_of_a_cut_stream_is_left_out_whatever_its_length() -> None:
    assert printed(b"a line\na key AKIAIOSF", 99) == "a line\n"
    assert printed(b"4111 1111 1111 ", 99) == ""
    assert printed(b"whole", 5) == "whole"
    assert printed(b"ends with a line\n", 99) == "ends with a line\n"
    started = time.process_time()
    assert printed(b"x" * (1 << 20), 1 << 21) == "x" * ((1 << 20) - 1024)
    assert time.process_time() - started < 1  # a search from each character takes ten times that
