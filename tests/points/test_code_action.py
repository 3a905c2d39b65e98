"""What an action and its hints come to, asked of the real policy: one finding at a time, in a fixed order."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cases.run import Runner
from engine.points.code_action import CodeActionLimits
from tests.expect import of

NO_TEXT: tuple[Any, ...] = (None, 7, True, [], {}, "", " ", "\n\t")
NO_OBJECT: tuple[Any, ...] = (None, 7, True, [], "{}")
NO_DENIAL: tuple[Any, ...] = ("allowed", "", " ", "null", "false", None, False, True, 0, ["off"], {})
NO_NUMBER: tuple[Any, ...] = ("x", None, True, [], {}, "inf", "nan")
ACTION: dict[str, Any] = {
    "id": "c1",
    "language": "python",
    "entrypoint": "main.py",
    "code": "wombat = 1\n",
    "input_payload": {"quokka": 1},
}


def code(runner: Runner, action: Any = ACTION, hints: Any = None, elapsed: int = 0) -> str | None:
    """The one finding's code, or None for an allow."""
    request = {"action": action, "policy_hints": hints, "elapsed_ms": elapsed}
    decision = runner.engine({}).check("code_action", request).decision
    assert [decision.outcome == "allow", len(decision.findings)] in ([True, 0], [False, 1])
    return decision.findings[0].code if decision.findings else None


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ACTION.items() if key != name}


# covers: C10.1
@pytest.mark.parametrize("action", [None, [], [ACTION], "print(1)", 7, True], ids=str)
def test_an_action_that_is_not_an_object_is_refused(action: Any, runner: Runner) -> None:
    assert code(runner, action) == "invalid_action:not_object"


# covers: C11.1-4
@pytest.mark.parametrize("name", ["id", "language", "entrypoint", "code"])
def test_missing_blank_or_mistyped_text_is_refused(name: str, runner: Runner) -> None:
    assert code(runner, without(name)) == f"invalid_action:{name}"
    for value in NO_TEXT:
        assert code(runner, {**ACTION, name: value}) == f"invalid_action:{name}"
    assert code(runner) is None  # the control


# covers: C11.5
def test_a_missing_or_non_object_payload_is_refused(runner: Runner) -> None:
    assert code(runner, without("input_payload")) == "invalid_action:input_payload"
    for value in NO_OBJECT:
        assert code(runner, {**ACTION, "input_payload": value}) == "invalid_action:input_payload"
    assert code(runner, {**ACTION, "input_payload": {}}) is None


# covers: C12.3
def test_length_is_counted_in_characters_of_the_untrimmed_code(runner: Runner) -> None:
    for letter in ("x", "\u00e9", "\U0001f600"):
        assert code(runner, {**ACTION, "code": letter * 2400}) is None
        assert code(runner, {**ACTION, "code": letter * 2401}) == "invalid_action:code_too_long"
    assert code(runner, {**ACTION, "code": "x" + " " * 2400}) == "invalid_action:code_too_long"


# covers: C13 C14.1 C72
@pytest.mark.parametrize(
    ("entrypoint", "want"),
    [("/main.py", "path"), ("main.py/", "path"), ("..\\main.py", "path"), ("a/b\\c", "path"), ("Main.py", "denied"),
     ("main.js", "denied"), ("main.py.sh", "denied"), ("main\u200b.py", "denied"), ("main.py\0", "denied"),
     ("x" * 500, "denied")],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_invalid_entry_points_are_refused(entrypoint: str, want: str, runner: Runner) -> None:
    assert code(runner, {**ACTION, "entrypoint": entrypoint}) == f"invalid_action:entrypoint_{want}"


# covers: C72.1
def test_the_order_of_the_checks(runner: Runner) -> None:
    steps: list[tuple[str, dict[str, Any]]] = [
        ("id", {"id": ""}), ("language", {"language": 7}), ("entrypoint", {"entrypoint": " "}), ("code", {"code": ""}),
        ("code_too_long", {"code": "x" * 9000}), ("input_payload", {"input_payload": []}),
        ("entrypoint_path", {"entrypoint": "a/b"}), ("entrypoint_denied", {"entrypoint": "b.py"}),
        ("unknown_field", {"further": 1}),
    ]  # fmt: skip
    for index, (want, _) in enumerate(steps):
        action = dict(ACTION)
        for _, change in reversed(steps[index:]):
            action |= change
        assert code(runner, action) == f"invalid_action:{want}"


# covers: C02.4 C03.1-3 C77.1 C77.3 H19
def test_network_access_is_checked_first(runner: Runner) -> None:
    refused = "invalid_request:network_access_must_be_denied"
    for value in ("denied", "none", "off", " OFF ", "Denied"):
        assert code(runner, hints={"network_access": value}) is None
    for refusable in NO_DENIAL:
        assert code(runner, hints={"network_access": refusable}) == refused
    assert code(runner, None, {"network_access": "allowed", "max_code_chars": "x"}, 10**6) == refused
    assert code(runner, None, {}, 10**6) == "max_seconds"


def limits(runner: Runner, hints: Any) -> CodeActionLimits:
    decision = runner.engine({}).check("code_action", {"action": ACTION, "policy_hints": hints, "elapsed_ms": 0})
    return of(CodeActionLimits, decision.decision.limits)


# covers: C02.1-3 C04.1 C05 C07 C08.1-5 C78.2 H18 H19
def test_hints_are_clamped_to_the_policy_limits(runner: Runner) -> None:
    default = limits(runner, None)
    assert (default.max_code_chars, default.exec_timeout_seconds, default.max_seconds) == (2400, 2.0, 25.0)
    assert default.allowed_languages_policy == ("javascript", "python")
    for chars, want in ((199, 200), (200, 200), ("2400", 2400), (8000, 8000), (8001, 8000), (10**400, 8000), (-1, 200)):
        assert limits(runner, {"max_code_chars": chars}).max_code_chars == want
    for seconds, kept in ((0.1, 0.2), (0.2, 0.2), ("3", 3.0), (20, 20.0), (20.1, 20.0), (-1, 0.2), (10**400, 2.0)):
        assert limits(runner, {"exec_timeout_seconds": seconds}).exec_timeout_seconds == kept
    for unreadable in NO_NUMBER:
        hints = {"max_code_chars": unreadable, "exec_timeout_seconds": unreadable}
        assert limits(runner, hints) == default
    assert limits(runner, {"allowed_languages": ["ruby"]}).allowed_languages_policy == ()
    wished = {"max_seconds": 900, "max_stdout_bytes": 10**6, "execution": ["javascript"], "entrypoints": ["x.py"]}
    assert limits(runner, wished) == default


# covers: H18.1
def test_values_without_a_json_form_are_refused_with_a_code(runner: Runner) -> None:
    assert code(runner, {**ACTION, "code": "x\0"}) == "invalid_action:code"
    for name, bad in (("code", "\ud800"), ("id", "\udfff"), ("input_payload", {"x": float("nan")}), ("\ud800", 1)):
        assert code(runner, {**ACTION, name: bad}) == "engine.request_invalid"
    assert code(runner, ACTION, {"network_access": "\ud800"}) == "engine.request_invalid"


# covers: C83
def test_neither_code_nor_payload_is_in_input_or_decision(runner: Runner) -> None:
    answer = runner.engine({}).check("code_action", {"action": ACTION, "elapsed_ms": 0})
    for text in (str(answer.document), answer.decision.model_dump_json()):
        assert "wombat" not in text
        assert "quokka" not in text
