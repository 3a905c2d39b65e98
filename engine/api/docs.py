"""The description of this API for programs and people: OpenAPI, JSON Schemas, and a page that needs no network."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from engine.api.messages import Response
from engine.api.page import SCRIPT, STYLE
from engine.api.page import page as page_of

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange

ASSETS: dict[str, tuple[bytes, bytes]] = {
    "page.css": (b"text/css; charset=utf-8", STYLE),
    "page.js": (b"text/javascript; charset=utf-8", SCRIPT),
}
"""What the page loads, all from here: media type and content."""

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


async def page(_api: Api, _exchange: Exchange) -> Response:
    """The page in which a person can read and try the API."""
    return Response(200, _page(), b"text/html; charset=utf-8", _HEADERS)


async def asset(_api: Api, exchange: Exchange) -> Response:
    """A file of that page."""
    media_type, content = ASSETS[exchange.head.path.rpartition("/")[2]]
    return Response(200, content, media_type, _HEADERS)


async def openapi(_api: Api, _exchange: Exchange) -> Response:
    """OpenAPI 3.1 of everything that is served."""
    return Response(200, _openapi())


async def schema(_api: Api, exchange: Exchange) -> Response:
    """The JSON Schema of the requests of a point."""
    return Response(200, _schema(exchange.head.path.rpartition("/")[2]), b"application/schema+json")


@cache
def _page() -> bytes:
    return page_of(json.loads(_openapi()))


@cache
def _openapi() -> bytes:
    from engine.api.openapi import document

    return json.dumps(document(), ensure_ascii=False).encode("utf-8")


@cache
def _schema(point: str) -> bytes:
    from engine.points.registry import find

    schema = find(point).request.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}).encode("utf-8")
