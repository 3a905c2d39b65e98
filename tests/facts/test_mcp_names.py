"""Local names of MCP tools, and which names are taken for one another."""

from __future__ import annotations

import pytest

from engine.facts.tools.mcp_names import collisions, confusables, local_name, skeleton, unambiguous


# covers: B37
@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("docs", "search", "mcp_docs__search"),
        ("docs", "search-all_now", "mcp_docs__search-all_now"),
        ("docs.eu", "find/all now!", "mcp_docs_eu__find_all_now_"),
        ("docs", "s\u0435arch", "mcp_docs__s_arch"),
        ("docs", "a\n\u202eb", "mcp_docs__a__b"),
    ],
)
def test_a_local_name_has_safe_characters_only(server: str, tool: str, name: str) -> None:
    assert local_name(server, tool) == name


# covers: B37
def test_a_server_id_with_underscores_cannot_imitate_another_server() -> None:
    assert local_name("a", "b__c") == local_name("a__b", "c")
    assert local_name("a", "_b") == local_name("a_", "b")
    assert [unambiguous(server) for server in ("a", "a_b", "a__b", "a_", "_a", "a..b", "a.", "")] == [
        *(True, True),
        *[False] * 6,
    ]


# covers: B37
def test_duplicate_names_collide() -> None:
    assert collisions(["a", "b", "a"]) == [True, False, True]


# covers: H14
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("search", "Search"),
        ("STRASSE", "stra\u00dfe"),
        ("search", "s\u0435arch"),
        ("search", "\u0455earch"),
        ("omega", "\u03bfmega"),
        ("search", "\uff53earch"),
        ("file0", "fileO"),
        ("lookup1", "lookupl"),
        ("Index", "lndex"),
        ("modern", "modem"),
        ("wiew", "vview"),
        ("click", "dick"),
        ("search", "sea\u200brch"),
        ("search", "se\u0301arch"),
        ("list", "\u04cfist"),
        ("id", "\u0131d"),
    ],
)
def test_confusable_names_are_detected(one: str, other: str) -> None:
    assert confusables([one, "another", other]) == [True, False, True]


@pytest.mark.parametrize(
    ("one", "other"),
    [("search", "research"), ("list", "lists"), ("files_read", "files_write"), ("a1", "a2"), ("get", "set")],
)
def test_distinct_names_are_not_confusable(one: str, other: str) -> None:
    assert confusables([one, other]) == [False, False]
    assert skeleton(one) != skeleton(other)


def test_duplicate_names_are_not_confusable() -> None:
    assert confusables(["a", "a"]) == [False, False]
