"""policy/sandbox.yaml: every mistake that a profile could make is told at its field."""

from __future__ import annotations

from typing import Any

import pytest

from engine.facts.code.boundaries import BOUND_NAMES, BOUNDARIES
from engine.values.sandbox import SHELLS, Sandbox
from tests.values import shipped
from tests.values.shipped import DROP, SHIPPED, changed


def errors(path: str, value: Any) -> dict[str, str]:
    """The messages by path, with slashes."""
    return {where.replace(".", "/"): message for where, message in shipped.errors("sandbox", (path, value))}


def test_the_boundary_list_has_19_unique_names() -> None:
    assert len(set(BOUNDARIES)) == 19


# covers: H05
@pytest.mark.parametrize("name", BOUND_NAMES)
@pytest.mark.parametrize("role", ["limits", "verifier"])
def test_a_profile_limit_above_the_floor_is_refused(role: str, name: str) -> None:
    most = SHIPPED["sandbox"]["floor"]["limits"][name]
    path = f"profiles/standard/{role}/{name}"
    (message,) = [text for where, text in errors(path, most + 1).items() if where == path]
    assert message.startswith("is above the floor's limit of ")
    Sandbox.model_validate(changed("sandbox", (path, most)))  # the control: what the floor admits
    assert list(errors(path, DROP)) == [path]


# covers: H05
@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_boundary_kind_weaker_than_the_floor_is_refused(name: str) -> None:
    path = f"profiles/standard/boundaries/{name}"
    admitted = SHIPPED["sandbox"]["floor"]["boundaries"][name]
    for kind in {"kernel", "supervised", "bounded"} - set(admitted):
        message = f"the floor does not allow this for `{name}`: a profile may only be stricter"
        assert errors(path, [kind]) == {f"{path}/0": message}
    assert f"{path}/0" in errors(path, ["unsupported"])
    assert list(errors(path, [])) == [path]


# covers: H05
@pytest.mark.parametrize("name", BOUNDARIES)
@pytest.mark.parametrize("where", ["floor", "profiles/standard"])
def test_a_missing_boundary_is_an_error(where: str, name: str) -> None:
    found = errors(f"{where}/boundaries/{name}", DROP)
    assert found[f"{where}/boundaries"] == f"has no `{name}`: every boundary must be enforced"


# covers: C80
@pytest.mark.parametrize("name", ["subprocess", "process", "none", "docker"])
def test_a_plain_subprocess_cannot_be_a_backend(name: str) -> None:
    assert list(errors(f"backends/{name}", {"isolation": "restricted_process"})) == [f"backends/{name}/[key]"]
    assert list(errors("profiles/standard/backend", name)) == ["profiles/standard/backend"]


# covers: C80
def test_an_unknown_isolation_of_a_backend_is_refused() -> None:
    assert list(errors("backends/bubblewrap/isolation", "best_effort")) == ["backends/bubblewrap/isolation"]


# covers: A94
def test_a_profile_names_a_backend_that_is_registered() -> None:
    assert errors("backends/gvisor", DROP) == {
        f"profiles/{name}/backend": "is not among `backends`" for name in ("gvisor", "analysis_gvisor")
    }


def test_packages_name_a_profile() -> None:
    row = {"tree": "sha256:" + "7" * 64, "profile": "nowhere"}
    assert errors("packages", {"science": row}) == {"packages/science/profile": "is not a profile"}


def test_an_alternative_must_be_an_existing_profile() -> None:
    assert errors("profiles/standard/alternatives", ["lenient"]) == {
        "profiles/standard/alternatives/0": "is not a profile"
    }


# covers: B11
@pytest.mark.parametrize("name", sorted(SHELLS))
def test_no_shell_can_be_an_executable(name: str) -> None:
    message = "is a shell, or starts other programs; list programs that run no other programs"
    assert errors(f"executables/{name}", f"/usr/bin/{name}") == {f"executables/{name}": message}
    assert errors("executables/list", f"/usr/bin/{name}") == {"executables/list": message}


# covers: B11
@pytest.mark.parametrize(
    "path", ["cat", "./cat", "/bin/../usr/bin/cat", "/usr/bin/../bin/cat", "/usr/bin/cat -n", "/opt/cat", "/usr/bin/"]
)
def test_an_executable_is_an_absolute_file_of_the_runtime(path: str) -> None:
    assert list(errors("executables/list", path)) == ["executables/list"]


# covers: B11
def test_no_shell_is_shipped() -> None:
    assert not SHELLS & SHIPPED["sandbox"]["executables"].keys()


# covers: A02
@pytest.mark.parametrize("kind", ["solution", "verifier"])
def test_solutions_and_verifiers_never_count_as_isolated_in_webassembly(kind: str) -> None:
    assert errors(f"artifact_isolation/{kind}", ["webassembly"]).keys() == {f"artifact_isolation/{kind}/0"}
    Sandbox.model_validate(changed("sandbox", ("artifact_isolation/tool", ["webassembly"])))  # the control
