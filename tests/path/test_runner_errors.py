"""Each boundary that a runner does not have is an exception of its own for callers of it."""

from __future__ import annotations

import pytest

from admission_adapters.runner import errors as runner_errors
from admission_adapters.runner.errors import (
    CodeToolUnsupportedError,
    FilesystemUnsupportedError,
    LocalNetworkUnsupportedError,
    McpUnsupportedError,
    UnsupportedBoundaryError,
    raise_unsupported,
)
from engine.cases.run import Runner
from engine.errors import WorkError
from engine.model import Decision, Finding, Level, Mode, Outcome
from tests.conftest import case

CLASSES = {
    "LOCAL_NETWORK_UNSUPPORTED_MESSAGE": LocalNetworkUnsupportedError,
    "FILESYSTEM_UNSUPPORTED_MESSAGE": FilesystemUnsupportedError,
    "MCP_UNSUPPORTED_MESSAGE": McpUnsupportedError,
    "CODE_TOOL_UNSUPPORTED_MESSAGE": CodeToolUnsupportedError,
}


def decision(*codes: str, outcome: Outcome = Outcome.DENY) -> Decision:
    findings = tuple(
        Finding(code=code, level=Level.DENY, requirement="must hold", subject=f"tools/{code.lower()}", remedy="none")
        for code in codes
    )
    return Decision(
        decision_id="0" * 32,
        point="runner_request",
        mode=Mode.ENFORCE,
        outcome=outcome,
        findings=findings,
        limits=None,
        policy=None,
        input_digest=None,
    )


# covers: D15.1-4
@pytest.mark.parametrize("code", CLASSES)
def test_each_boundary_has_its_own_class(code: str) -> None:
    with pytest.raises(UnsupportedBoundaryError) as caught:
        raise_unsupported(decision("other_code", code))
    assert type(caught.value) is CLASSES[code]
    assert caught.value.code == code
    assert caught.value.subject == f"tools/{code.lower()}"
    assert caught.value.remedy
    assert isinstance(caught.value, WorkError)


# covers: D15
def test_error_classes_are_distinct() -> None:
    assert len({one.code for one in CLASSES.values()}) == len({one.text for one in CLASSES.values()}) == len(CLASSES)
    for one in CLASSES.values():
        assert [other for other in CLASSES.values() if issubclass(one, other)] == [one]
    assert tuple(CLASSES.values()) == runner_errors._CLASSES


def test_the_first_of_several_is_raised() -> None:
    with pytest.raises(LocalNetworkUnsupportedError):
        raise_unsupported(decision(*reversed(CLASSES)))


def test_a_finding_about_no_boundary_raises_nothing() -> None:
    raise_unsupported(decision("backend_not_admitted", "tool_permission_missing"))
    raise_unsupported(decision())


def test_an_allow_raises_nothing() -> None:
    raise_unsupported(decision("MCP_UNSUPPORTED_MESSAGE", outcome=Outcome.ALLOW))


def test_a_confirm_about_a_boundary_raises_too() -> None:
    with pytest.raises(McpUnsupportedError):
        raise_unsupported(decision("MCP_UNSUPPORTED_MESSAGE", outcome=Outcome.CONFIRM))


# covers: D15 D16.1
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("local_network_strict", LocalNetworkUnsupportedError),
        ("filesystem_local_strict", FilesystemUnsupportedError),
        ("stdio_mcp", McpUnsupportedError),
        ("custom_tool_over_mcp_only", McpUnsupportedError),
        ("code_tool", CodeToolUnsupportedError),
    ],
)
def test_a_real_decision_gives_the_class_of_its_boundary(
    name: str, kind: type[UnsupportedBoundaryError], runner: Runner
) -> None:
    file = case("runner_request", name)
    with pytest.raises(kind) as caught:
        raise_unsupported(runner.answer(file).decision)
    assert str(caught.value) == kind.text
