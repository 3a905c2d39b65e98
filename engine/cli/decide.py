"""`engine decide POINT`: one enforced decision on a request given as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.formats import answers_text
from engine.cli.formats.show import approval_lines
from engine.cli.inputs import request_or_error
from engine.cli.outputs import json_text, print_text
from engine.documents.files import printable

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Answer

_MOST_FACTS = 60


@options.sourced(*options.DECIDING, "state", *options.SERVED, "values", "now")
def decide(
    point: options.Point,
    sources: options.Sources,
    request: options.Request = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the point's requests and exit.")
    ] = False,
    how: options.Output = "json",
    explain: Annotated[
        bool, typer.Option("--explain", help="With --format text, also print facts, rules, revisions and limits.")
    ] = False,
) -> None:
    """Decide one request and print the decision, as JSON or for people.

    A confirm returns the id of an approval: grant it with `engine approvals grant`, then repeat with `--approval`.

    Recorded with mode `enforce`; with `--values` or `--now`, as a dry run (`check`).
    """
    from engine.points.registry import find

    if schema:
        print_text(json_text(find(point).request.model_json_schema()))
        return
    if explain and how == "json":
        raise typer.BadParameter("it needs --format text", param_hint="--explain")
    stated = request_or_error(point, request)
    with sources.engine(point) as engine:
        options.report_lowered(engine, point)
        ask = engine.check if sources.values or sources.now else engine.decide
        answer = ask(point, stated, context=sources.context())
        text = _text(engine, answer, str(request or "standard input"), explain=explain) if how == "text" else None
    print_text(text or json_text(answer.decision.model_dump(mode="json")))
    raise typer.Exit(answer.exit)


def _text(engine: Engine, answer: Answer, name: str, *, explain: bool) -> str:
    """The decision for people; with `explain`, also the facts that it was taken on."""
    lines = [answers_text(engine, name, [answer], answer.exit, explain=explain).removesuffix("\n")]
    if explain and answer.gathered is not None:
        lines += ["", "facts:", *_facts(answer.gathered.input.model_dump(mode="json", exclude_none=True))]
    if asked := approval_lines(answer.decision):
        lines += ["", *asked]
    return "\n".join(lines)


def _facts(document: Any) -> list[str]:
    """The first facts with their paths, secrets redacted, and how many more there are."""
    from engine.secrets.redaction import redact

    found = list(_flat(redact(document)[0], ()))
    lines = [f"  {printable('.'.join(path))} = {printable(value, 400)}" for path, value in found[:_MOST_FACTS]]
    left = len(found) - len(lines)
    return lines + ([f"  … and {left:,} more; `engine record show --decision-id` has all"] if left else [])


def _flat(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each scalar, and each empty list or object, with its path."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not below:
        yield path, json.dumps(value, ensure_ascii=False)
    for name, child in below:
        yield from _flat(child, (*path, str(name)))
