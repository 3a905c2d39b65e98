"""`engine decide POINT`: one enforced decision on a request given as JSON or YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli import options


def decide(
    point: Annotated[str, typer.Argument(help="Decision point, such as source or license.")],
    request: Annotated[
        Path | None, typer.Option("-i", "--input", metavar="FILE", help="Request as JSON (default: standard input).")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the point's requests and exit.")
    ] = False,
    principal: options.Principal = None,
    run: options.Run = None,
    approval: options.Approval = None,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
    values: options.Values = None,
    now: options.Now = None,
) -> None:
    """Decide one request and print the decision as JSON.

    A confirm gives the id of an approval that `engine approvals` grants; ask again with `--approval`.

    Recorded with mode `enforce`; with another value or time to try, it is a dry run (`check`).
    """
    import json

    from engine.engine import Engine
    from engine.points.registry import find

    if schema:
        typer.echo(json.dumps(find(point).request.model_json_schema(), indent=2))
        return
    content = _content(request)
    moment = options.moment(now)
    chosen = options.settings(state, policy, rego, bundle, (release, release_key))
    with Engine(chosen, values=tuple(values or ()), now=lambda: moment) as engine:
        options.tell_recovered(engine)
        options.tell_lowered(engine, point)
        context = options.context(principal, run, approval)
        answer = (engine.check if values or now else engine.decide)(point, content, context=context)
    typer.echo(json.dumps(answer.decision.model_dump(mode="json"), indent=2, ensure_ascii=False))
    raise typer.Exit(answer.exit)


def _content(request: Path | None) -> Any:
    """The request as plain JSON, or the error that kept it from being read: the engine answers for that."""
    import sys

    from engine.errors import GatherError
    from engine.files import load, read_bytes
    from engine.settings import ReadLimits

    limits = ReadLimits()
    try:
        if request is None or str(request) == "-":
            data = sys.stdin.buffer.read(limits.document_bytes + 1)
            return load(data, "standard input", limits).value
        return load(read_bytes(request, limits.document_bytes), str(request), limits).value
    except GatherError as error:
        return error
