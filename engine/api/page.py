"""The API as a page for people, made from its OpenAPI document: no network, no library, one small script of ours."""

from __future__ import annotations

import json
from html import escape
from typing import Any

SCRIPT = b"""for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = form.querySelector("output");
    const headers = {};
    const token = document.getElementById("token").value.trim();
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const body = form.querySelector("textarea");
    if (body) headers["Content-Type"] = "application/json";
    told.textContent = "\\u2026";
    try {
      const answer = await fetch(form.dataset.path, {
        method: form.dataset.method,
        headers,
        body: body ? body.value : undefined,
      });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (_) { /* not JSON: as it is */ }
      told.textContent = `${answer.status} ${answer.statusText}\\n${shown}`;
    } catch (error) {
      told.textContent = `no answer: ${error.message}`;
    }
  });
}
"""

STYLE = b"""body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1rem 4rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
details { border: 1px solid #ccc; border-radius: 4px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 3.2rem; font-weight: 700; }
.post { color: #0b5d1e; } .get { color: #0b3d91; }
pre, output, textarea, input { font: 13px/1.4 ui-monospace, monospace; }
pre, output { background: #f4f4f4; display: block; overflow: auto; padding: .5rem; }
pre, output { white-space: pre; max-height: 24rem; }
textarea { width: 100%; min-height: 10rem; box-sizing: border-box; } input { width: 100%; box-sizing: border-box; }
button { font: inherit; padding: .3rem 1rem; margin: .4rem 0; }
table { border-collapse: collapse; }
td { border-top: 1px solid #ddd; padding: .2rem .8rem .2rem 0; vertical-align: top; }
label { display: block; margin: .5rem 0; }
"""


_DEPTH = 6
"""Levels of an example; deeper objects are shown empty."""


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
        '<link rel="stylesheet" href="/docs/page.css"><link rel="icon" href="data:,"></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>'
        "<label>Token, where this engine asks for one (kept in this page only) "
        '<input id="token" type="password" autocomplete="off"></label>'
        f'{sections}<script src="/docs/page.js"></script></body></html>'
    ).encode()


def _operation(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    body = ""
    if schema is not None:
        example = json.dumps(example_of(schema, document), indent=2)
        body = (
            f'<label>Body <textarea spellcheck="false">{escape(example)}</textarea></label>'
            f"<details><summary>Schema of the body</summary><pre>{_schema(schema, document)}</pre></details>"
        )
    answers = "".join(
        f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method {method}">{method.upper()}'
        f"</span> <code>{escape(path)}</code> {escape(operation['summary'])}</summary>"
        f'<form data-path="{escape(path)}" data-method="{method.upper()}">{body}'
        "<button>Send</button><output></output></form>"
        f"<details><summary>Answers</summary><table>{answers}</table></details></details>"
    )


def _schema(schema: dict[str, Any], document: dict[str, Any]) -> str:
    return escape(json.dumps(_resolved(schema, document), indent=2))


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
    choices = [schema[word][0] for word in ("anyOf", "oneOf", "allOf") if word in schema]
    if choices:
        return example_of(choices[0], document, depth)
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        wanted = [name for name in schema.get("required", ()) if name in fields] if depth < _DEPTH else []
        return {name: example_of(fields[name], document, depth + 1) for name in wanted}
    text = "0" * 64 if "64" in schema.get("pattern", "") else "text"
    return {"string": text, "array": [], "integer": 0, "number": 0, "boolean": False}.get(str(schema.get("type")))
