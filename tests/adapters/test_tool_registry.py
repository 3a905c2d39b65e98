"""The registry of active tools: nothing is shared with whoever stored or reads, and nothing is replaced."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.tool_registry import ToolRegistry
from engine.errors import WorkError


def read_file(path: str) -> str:
    return path


def definition() -> dict[str, Any]:
    return {"name": "files_read", "input_schema": {"type": "object", "properties": {"path": {"enum": ["a"]}}}}


# covers: D49
def test_changing_a_nested_value_after_storing_does_not_change_the_registry() -> None:
    registry, given = ToolRegistry(), definition()
    registry.add("files_read", read_file, given)
    given["input_schema"]["properties"]["path"]["enum"].append("b")
    assert given != definition()  # the control: it was changed
    assert registry.definition("files_read") == definition()


# covers: D49
def test_changing_a_nested_value_in_a_read_copy_does_not_change_the_registry() -> None:
    registry = ToolRegistry()
    registry.add("files_read", read_file, definition())
    copy = registry.definition("files_read")
    copy["input_schema"]["properties"].clear()
    assert copy != definition()  # the control: it was changed
    assert registry.definition("files_read") == definition()


def test_a_tool_is_found_by_its_exact_name() -> None:
    registry = ToolRegistry()
    registry.add("b", read_file, {})
    registry.add("a", len, {})
    assert registry.names() == ("a", "b")
    assert registry.get("b") is read_file
    for ask in (registry.get, registry.definition):
        with pytest.raises(WorkError) as caught:
            ask("B")
        assert caught.value.code == "engine.tool_missing"


def test_a_name_is_never_taken_over() -> None:
    registry = ToolRegistry()
    registry.add("a", read_file, definition())
    with pytest.raises(WorkError) as caught:
        registry.add("a", len, {})
    assert caught.value.code == "engine.tool_not_registered"
    assert registry.get("a") is read_file
    assert registry.definition("a") == definition()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a\n", "x" * 129, None, 1])
def test_a_name_that_no_tool_may_have_is_refused(name: Any) -> None:
    registry = ToolRegistry()
    with pytest.raises(WorkError, match="characters"):
        registry.add(name, read_file, {})
    assert registry.names() == ()


@pytest.mark.parametrize("given", [None, [], "{}", {"a": float("nan")}, {"a": {1}}, {"a": object()}])
def test_a_definition_that_is_no_json_is_refused(given: Any) -> None:
    registry = ToolRegistry()
    with pytest.raises(WorkError, match="no JSON object"):
        registry.add("a", read_file, given)
    with pytest.raises(WorkError, match="no callable"):
        registry.add("a", None, {})  # type: ignore[arg-type]
    assert registry.names() == ()
