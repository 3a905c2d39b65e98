"""The decision service that one would write in an afternoon: FastAPI in front of opa-python-client.

It validates its input, asks OPA and gives the answer; it records nothing. Run it with uvicorn and the
port of its OPA in BENCH_OPA_PORT.
"""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from opa_client.opa import OpaClient
from pydantic import BaseModel


class Request(BaseModel):
    """The input of the decision, with whatever facts its point has."""

    model_config = {"extra": "allow"}

    point: str
    now: int


class Decision(BaseModel):
    """What the policy answers."""

    outcome: str
    findings: list[dict[str, Any]]
    limits: dict[str, Any] | None = None


app = FastAPI()
client = OpaClient(host="127.0.0.1", port=int(os.environ["BENCH_OPA_PORT"]))


@app.post("/decide")
def decide(request: Request) -> Decision:
    """One decision; 503 where OPA gives none."""
    answer = client.query_rule(input_data=request.model_dump(), package_path="admission", rule_name="decision")
    if "result" not in answer:
        raise HTTPException(503, "the policy gives no decision")
    return Decision.model_validate(answer["result"])
