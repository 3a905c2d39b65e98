"""A replay as one HTML page that loads nothing: to be opened from a disk or sent on.

The page is a tree that the serializer writes, so every text in it is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from engine.cli.formats.show import clean
from engine.cli.record.replayed import value_text, what, words

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.45; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8886; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
details { border: 1px solid #8886; border-radius: .3rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
code { overflow-wrap: anywhere; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(document: dict[str, Any], title: str | None = None) -> str:
    """The page of a replay, from its document."""
    policy, record = document["policy"], document["record"]
    title = title or f"Replay by policy {policy['name']}"
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "title").text = clean(title)
    SubElement(head, "style").text = _STYLE
    body = SubElement(SubElement(html, "body"), "main")
    _add(body, "h1", title)
    _add(body, "p", f"{record['decisions']:,} recorded decisions, {record['first']} to {record['last']}.")
    _add(body, "p", "Outcomes or limits changed." if document["changed"] else "No outcome and no limits changed.")
    _facts(body, [("Rules", policy["rules"]), ("Values", policy["values"])])
    _add(body, "h2", "By decision point")
    kinds = list(document["counts"])
    rows = [[one["point"], *(one[kind] for kind in kinds)] for one in document["points"]]
    _table(body, ["point", *map(words, kinds)], [*rows, ["all", *document["counts"].values()]])
    told = ""
    for change in document["changes"]:
        if change["change"] != told:
            told = change["change"]
            _add(body, "h2", words(told).capitalize())
        _change(body, change)
    if document["not_decided"]:
        _add(body, "h2", "Not decided")
        _add(body, "p", "These inputs cannot be decided as they were.")
        cells = [[one["point"], one["reason"], one["decisions"]] for one in document["not_decided"]]
        _table(body, ["point", "reason", "decisions"], cells)
    if record["unreadable_lines"]:
        _add(body, "h2", "Unreadable lines of the record")
        _list(body, record["unreadable_lines"])
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html")


def _change(parent: Element, change: dict[str, Any]) -> None:
    details = SubElement(parent, "details")
    _add(details, "summary", f"{change['point']} {what(change)} ({change['decisions']:,})")
    facts = [("Required", change["required"]), ("Fix", change["fix"]), ("Rule", change["rule"])]
    _facts(details, [(name, text) for name, text in facts if text is not None])
    if change["values"]:
        _add(details, "p", "Values")
        _list(details, [value_text(row) for row in change["values"]])
    more = f", and {change['more_subjects']:,} more" if change["more_subjects"] else ""
    title = "before and now" if change["change"] == "other_limits" else "subject"
    _table(details, [f"{title}{more}", "times"], [[one["subject"], one["times"]] for one in change["subjects"]])
    _add(details, "p", "Decisions, such as")
    _list(details, change["examples"])


def _facts(parent: Element, facts: Sequence[tuple[str, str]]) -> None:
    listed = SubElement(parent, "dl")
    for name, text in facts:
        _add(listed, "dt", name)
        _add(listed, "dd", text)


def _list(parent: Element, texts: Sequence[str]) -> None:
    listed = SubElement(parent, "ul")
    for text in texts:
        _add(SubElement(listed, "li"), "code", text)


def _table(parent: Element, head: Sequence[str], rows: Sequence[Sequence[str | int]]) -> None:
    drawn = SubElement(parent, "table")
    titles = SubElement(SubElement(drawn, "thead"), "tr")
    for title in head:
        _add(titles, "th", title, scope="col")
    lines = SubElement(drawn, "tbody")
    for row in rows:
        line = SubElement(lines, "tr")
        for cell in row:
            number = isinstance(cell, int)
            _add(line, "td", f"{cell:,}" if number else str(cell), **({"class": "number"} if number else {}))


def _add(parent: Element, tag: str, text: str, **attributes: str) -> None:
    SubElement(parent, tag, attributes).text = clean(text)
