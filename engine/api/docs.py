"""The description of this API for programs and people: OpenAPI, JSON Schemas, and a page that needs no network."""

from __future__ import annotations

import json
import re
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api.messages import Exchange, Response, Routes

if TYPE_CHECKING:
    from engine.api.app import App


_FOLDER = Path(__file__).parent

ASSETS = {"page.css": b"text/css; charset=utf-8", "page.js": b"text/javascript; charset=utf-8"}
"""What the page loads, all from this folder, and its media types."""

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from anywhere else, and nothing inline."""

_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Description:
    """Answers with the description of these routes."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def page(self, _api: App, _exchange: Exchange) -> Response:
        """The page in which a person can read and try the API."""
        return Response(200, self._page, b"text/html; charset=utf-8", _HEADERS)

    async def openapi(self, _api: App, _exchange: Exchange) -> Response:
        """OpenAPI 3.1 of everything that is served."""
        return Response(200, self._text)

    @cached_property
    def _text(self) -> bytes:
        return json.dumps(self._document, ensure_ascii=False).encode("utf-8")

    @cached_property
    def _document(self) -> dict[str, Any]:
        from engine.api.openapi import document

        return document(self._routes)

    @cached_property
    def _page(self) -> bytes:
        return page(self._document)


async def asset(_api: App, exchange: Exchange) -> Response:
    """A file of that page."""
    name = exchange.head.path.rpartition("/")[2]
    return Response(200, _content(name), ASSETS[name], _HEADERS)


@cache
def _content(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


async def schema(_api: App, exchange: Exchange) -> Response:
    """The JSON Schema of the requests of a point, or of the result of a run."""
    return Response(200, _schema(exchange.head.path.rpartition("/")[2]), b"application/schema+json")


@cache
def _schema(name: str) -> bytes:
    from engine.facts.run_result import WireRunResult
    from engine.points.registry import find

    schema = (WireRunResult if name == "run_result" else find(name).request).model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}).encode("utf-8")


_DEPTH = 6
"""Levels of an example; deeper objects are left empty."""


def page(document: dict[str, Any]) -> bytes:
    """The HTML page of an OpenAPI document."""
    info = document["info"]
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(path, method, operation, document))
    sections = "".join(f"<h2>{escape(name)}</h2>{''.join(operations)}" for name, operations in groups.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}</title>"
        '<link rel="stylesheet" href="/docs/page.css"><link rel="icon" href="data:,"></head><body><main>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>'
        "<label>Token, where this engine asks for one (kept in this page only) "
        '<input id="token" type="password" autocomplete="off"></label>'
        f'{sections}</main><script src="/docs/page.js"></script></body></html>'
    ).encode()


def _operation(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = ""
    if schema is not None:
        example = json.dumps(example_of(schema, document), indent=2)
        resolved = json.dumps(_resolved(schema, document), indent=2)
        body = (
            f'<label>Body <textarea spellcheck="false">{escape(example)}</textarea></label>'
            f"<details><summary>Schema of the body</summary><pre>{escape(resolved)}</pre></details>"
        )
    names = "".join(f'<label>{name} <input name="{name}" required></label>' for name in re.findall(r"{(\w+)}", path))
    answers = "".join(
        f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method {method}">{method.upper()}'
        f"</span> <code>{escape(path)}</code> {escape(operation['summary'])}</summary>"
        f'<form data-path="{escape(path)}" data-method="{method.upper()}">{names}{body}'
        "<button>Send</button><output></output></form>"
        f"<details><summary>Answers</summary><table>{answers}</table></details></details>"
    )


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    found = schema
    while "$ref" in found:
        found = document["components"]["schemas"][found["$ref"].rpartition("/")[2]]
    return found


def example_of(schema: dict[str, Any], document: dict[str, Any], depth: int = 0) -> Any:
    """A value with the required fields of a schema: something to start typing from."""
    schema = _resolved(schema, document)
    stated = [schema[word] for word in ("const", "default") if word in schema]
    stated += [schema[word][0] for word in ("enum", "examples") if schema.get(word)]
    if stated:
        return stated[0]
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        names = [name for name in schema.get("required", ()) if name in fields] if depth < _DEPTH else []
        return {name: example_of(fields[name], document, depth + 1) for name in names}
    choices = [schema[word][0] for word in ("anyOf", "oneOf", "allOf") if word in schema]
    if choices:
        return example_of(choices[0], document, depth)
    text = "0" * 64 if "64" in schema.get("pattern", "") else "text"
    return {"string": text, "array": [], "integer": 0, "number": 0, "boolean": False}.get(str(schema.get("type")))
