"""Pages from templates, and the headers that every answer has."""

from __future__ import annotations

import json
import re
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from engine.api.messages import Response
from engine.documents.files import counted
from engine.errors import EngineError
from engine.times import time_text

HTML = b"text/html; charset=utf-8"
ASSETS = {"workbench.css": b"text/css; charset=utf-8", "workbench.js": b"text/javascript; charset=utf-8"}

HEADERS = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, a browser sends `Origin: null` with a form
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Nothing from another site, nothing inline, in no frame."""


class PageError(EngineError):
    """What a person is shown in place of a page; `status` is that of HTTP."""

    status = 400


class UnknownError(PageError):
    """There is no such thing."""

    code = "engine.not_found"
    status = 404


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page from a template."""
    return Response(status, rendered(template, **values).encode("utf-8"), HTML, HEADERS)


def rendered(template: str, **values: Any) -> str:
    """A template with these values. Every text in it is escaped."""
    return _environment().get_template(template).render(values)


def moved(to: str, *headers: tuple[bytes, bytes]) -> Response:
    """The answer after a form: the page to go on with."""
    return Response(303, b"", HTML, (*HEADERS, *headers, (b"location", to.encode("ascii"))))


def asset(name: str) -> Response:
    """A file that pages load."""
    return Response(200, _content(name), ASSETS[name], HEADERS)


@cache
def _content(name: str) -> bytes:
    return (files("engine.workbench") / "static" / name).read_bytes()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("engine.workbench"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pretty = partial(json.dumps, ensure_ascii=False, indent=2, sort_keys=True)
    made.filters.update(counted=counted, pretty=pretty, verbatim=_verbatim, moment=time_text, prose=_prose)
    return made


def _visible(value: Any) -> Any:
    r"""Text without characters that nobody sees: they are written as `\x1b` or `\u202e`."""
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode("ascii") for char in value
    )


def _prose(text: str) -> Markup:
    """A sentence of the engine, in which names and values are between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(_visible(text)))))  # noqa: S704  (escaped)


def _verbatim(text: str) -> Markup:
    """Text of a file for a field in which it is edited: every character as it is."""
    return Markup("%s") % text
