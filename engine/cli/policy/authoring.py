"""`engine policy init`, `input` and `values`: where authors of rules and values begin."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.inputs import request_or_error
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import built_policy
from engine.documents.files import counted, printable
from engine.errors import GatherError

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder.", show_default=False)],
    recipe: Annotated[
        str | None,
        typer.Option(
            "--template", metavar="RECIPE", help="Copy a shipped recipe, such as coding_agent, not the example."
        ),
    ] = None,
) -> None:
    """Start a policy folder of your own: values over the shipped ones, an example rule, tests, cases, schemas.

    In an existing policy folder, only the schemas for editors are written again.
    """
    from engine.policy_bundle.starting import start

    written = start(folder, _schemas(), recipe)
    name = printable(str(folder))
    for path in (path for path in written if path.parts[0] != "schemas"):
        print_text(f"  {printable(str(path))}")
    print_text(f"{name}: {counted(len(written), 'file')} written, with the schemas for editors")
    print_text(f"next: engine policy test --policy {name}")


@options.sourced(*options.DECIDING, "state", *options.SERVED, "values", "now")
def facts(sources: options.Sources, point: options.Point, request: options.Request = None) -> None:
    """Print what rules see of a request: the `input` document, and the values that the rules of the point read.

    A dry run: the request is decided and recorded with mode `check`, nothing is enforced.
    """
    from engine.policy_bundle.reads import values_read

    with sources.engine(point) as engine:
        answer = engine.check(point, request_or_error(point, request), sources.context())
        fault = answer.fault
        if fault is not None and (answer.document is None or engine.policy is None or fault.code == "policy_stale"):
            raise fault
        read = [] if engine.policy is None else values_read(engine.policy, point)
    print_text(json_text({"input": answer.document, "values_read": read}))


@options.sourced(*options.RULES, "values")
def values(
    sources: options.Sources,
    document: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Document to print, such as licenses.", show_default=False)
    ] = None,
) -> None:
    """List the documents of values with their files, or print the effective values of one as JSON."""
    from engine.policy_bundle.schemas import likely
    from engine.values import DERIVED

    built = built_policy(sources)
    known = sorted(built.data.keys() - DERIVED.keys())
    if document is None:
        for name in known:
            print_text("\n".join(_document_text(built, name)))
    elif document not in known:
        remedy = f"{likely(document, known)}use one of: {', '.join(known)}"
        raise GatherError(f"there are no values `{printable(document, 40)}`", remedy=remedy)
    else:
        print_text(json_text(built.data[document]))


def _document_text(built: PolicyBundle, name: str) -> list[str]:
    """The name of a document with what it is about, and the files that it is read from."""
    files = sorted({place.file for path, place in built.places.items() if path[0] == name})
    paths = [built.sources.path(file) for file in files if file.endswith(".yaml")]
    shipped = next((path for path in paths if path.parent == built.sources.policy), None)
    about = "what your own rules read" if shipped is None else _first_sentence(shipped)
    return [f"{name:<15} {about}", *(f"{'':<15} {printable(str(path), 400)}" for path in reversed(paths))]


def _first_sentence(file: Path) -> str:
    """The first sentence of the comment that a document of values begins with."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = takewhile(
        lambda line: line.startswith("#"), (line for line in lines if "yaml-language-server" not in line)
    )
    text = " ".join(" ".join(line.lstrip("#") for line in comment).split())
    return printable(re.split(r"(?<=\.)\s", text, maxsplit=1)[0].rstrip("."), 200)


def _schemas() -> dict[str, Any]:
    """What editors check in a policy folder, by path below `schemas/`."""
    from engine.cases.run import Case
    from engine.points.registry import POINTS
    from engine.policy_bundle.sources import Recipe
    from engine.policy_bundle.starting import partial
    from engine.values import DOCUMENTS

    found = {f"values/{name}": partial(model.model_json_schema()) for name, model in DOCUMENTS.items()}
    found |= {f"input/{point.name}": point.input_schema for point in POINTS.values()}
    found |= {"recipe": Recipe.model_json_schema(), "case": Case.model_json_schema()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: head | schema for name, schema in found.items()}
