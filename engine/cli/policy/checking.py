"""`engine policy lint` and `engine policy test`: every problem of rules, values, tests and cases at once."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.binaries import find_binary
from engine.cli import options
from engine.cli.formats import ReportFormat
from engine.cli.outputs import print_text, write_file
from engine.cli.policy.commands import build_from
from engine.cli.terminal import notice
from engine.cli.waiting import during
from engine.documents.files import counted, printable
from engine.errors import EngineError, Exit, GatherError, Location, PolicyError, Problem
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.cli.formats.problems import Checked
    from engine.policy_bundle.build import PolicyBundle

Format = Annotated[ReportFormat, typer.Option("--format", help="Output format.")]

_LINT, _TEST, _CASE = "policy_lint", "policy_test", "policy_case"
_TITLES = {
    _LINT: "Rules and values can be built",
    _TEST: "Tests beside the rules pass and cover them",
    _CASE: "Cases get the decision that they expect",
}
_ANSWER_SECONDS = 10.0  # for one case, as for one test: a rule may not end


@options.sourced(*options.RULES, "values")
def lint_policy(
    sources: options.Sources,
    how: Format = ReportFormat.TEXT,
    fix: Annotated[bool, typer.Option("--fix", help="First format the rules of the recipe as `opa fmt` does.")] = False,
) -> None:
    """Report problems in rules and values with file, line and remedy. Exits with 5 if there are any."""
    if fix:
        _format(sources)
    checked, policy = _built(sources)
    if policy is not None and (problems := policy.rows_without_effect(int(time.time()))):
        checked = replace(checked, problems=problems)
    for row in () if policy is None else policy.rows_spelled_alike():
        notice(f"{row.where}: {row.message}; {row.remedy}")
    _print(how, [checked])


@options.sourced(*options.RULES, "values")
def run_policy_tests(
    sources: options.Sources,
    cases: Annotated[Path | None, options.folder(help="Also run the case files in this folder.")] = None,
    how: Format = ReportFormat.TEXT,
) -> None:
    """Run the Rego tests and the cases of the policy. Exits with 5 if one fails or a line is not covered.

    Runs the tests and cases of the recipe if it has rules or values of its own, otherwise the tests of rego/.
    """
    built, policy = _built(sources)
    if policy is None:
        _print(how, [built])
        return
    folders = [one for one in (sources.settings().recipe / "cases", cases) if one is not None and one.is_dir()]
    values = tuple(sources.values or ())
    cases_of = (_cases(folder, sources.settings(), values) for folder in folders)
    _print(how, [*_rego_tests(policy, cases=bool(folders)), *cases_of])


def edit_problems(policy: PolicyBundle, settings: Settings) -> tuple[Problem, ...] | None:
    """What the tests and cases of one's own recipe say of a policy whose sources have edits; None if it has none."""
    from engine.cases.run import case_paths
    from engine.policy_bundle.sources import snapshot

    if settings.recipe == Settings().recipe:
        return None
    checked = list(_rego_tests(policy, cases=True)) if snapshot(policy.sources).own else []
    cases = settings.recipe / "cases"
    if cases.is_dir() and case_paths(cases):
        with tempfile.TemporaryDirectory(prefix="admission-edit-") as scratch:
            checked.append(_cases(cases, _edited(policy, settings, Path(scratch)), ()))
    return tuple(problem for one in checked for problem in one.problems) if checked else None


def _edited(policy: PolicyBundle, settings: Settings, scratch: Path) -> Settings:
    """The settings with copies of the folders that a person may edit, in which the edits are."""
    recipe = Path(shutil.copytree(settings.recipe, scratch / policy.sources.recipe_name))
    values = Path(shutil.copytree(settings.policy, scratch / "values-of" / "policy"))
    own = replace(settings, recipe=recipe, policy=values)
    copies = replace(policy.sources, recipe=recipe, policy=values)
    for name, data in policy.sources.edits:
        copies.path(name).parent.mkdir(exist_ok=True)
        copies.path(name).write_bytes(data)
    return own


def _print(how: ReportFormat, checked: list[Checked]) -> None:
    from engine.cli.formats.problems import render

    print_text(render(how, checked))
    if any(one.problems for one in checked):
        raise typer.Exit(Exit.POLICY_INVALID)


def _built(sources: options.Sources) -> tuple[Checked, PolicyBundle | None]:
    from engine.cli.formats.problems import Checked

    try:
        built = build_from(sources)
    except PolicyError as error:
        options.refuse_values(error.problems)
        return Checked(_LINT, _TITLES[_LINT], "", error.problems), None
    entries = built.catalogue.points.values()
    count = len({(one.file, one.code) for point in entries for one in point.requirements.values()})
    passed = f"{counted(count, 'requirement')} at {counted(len(entries), 'point')}: no problems"
    return Checked(_LINT, _TITLES[_LINT], passed, ()), built


def _rego_tests(policy: PolicyBundle, *, cases: bool) -> Iterator[Checked]:
    from engine.cli.formats.problems import Checked
    from engine.opa.command import OpaCommand
    from engine.policy_bundle.testing import run_tests

    with during("running the tests"):
        run = run_tests(policy, OpaCommand(find_binary().path), cases=cases)
    passed = f"{counted(run.passed, 'test')} passed; 100 % of lines covered in {counted(run.files, 'file')}"
    if run.untested:
        without = ", ".join(policy.sources.where(Location(name)).file for name in run.untested)
        passed = f"{passed}; no tests beside {without}"
    if run.passed or run.problems:
        yield Checked(_TEST, _TITLES[_TEST], passed, run.problems)


def _cases(folder: Path, settings: Settings, values: tuple[str, ...]) -> Checked:
    from engine.cases.run import CaseFile, Runner, case_paths, read_case
    from engine.cli.formats.problems import Checked

    def differences(path: Path) -> Iterator[Problem]:
        try:
            file: CaseFile = read_case(path)
            for difference in runner.differences(file, runner.answer(file)):
                yield Problem(Location(str(path)), difference, "correct the case, or the rule or value that it caught")
        except EngineError as error:
            yield Problem(error.where or Location(str(path)), error.message, error.remedy)

    paths = case_paths(folder)
    if not paths:
        raise GatherError(f"there are no cases in `{printable(str(folder))}`", remedy="name a folder with case files")
    limits = replace(settings.opa, answer_seconds=_ANSWER_SECONDS)
    with (
        tempfile.TemporaryDirectory(prefix="admission-cases-") as scratch,
        Runner(replace(settings, opa=limits), Path(scratch), values) as runner,
        during(f"running {counted(len(paths), 'case')}"),
    ):
        problems = [problem for path in paths for problem in differences(path)]
    return Checked(_CASE, _TITLES[_CASE], f"{counted(len(paths), 'case')} passed", problems)


def _format(sources: options.Sources) -> None:
    """Write the rules of the recipe as `opa fmt` does; files that do not parse stay as they are."""
    from engine.opa.command import OpaCommand

    opa = OpaCommand(find_binary().path)
    for path in sorted((sources.settings().recipe / "rules").rglob("*.rego")):
        done = opa.format(path)
        if done.code == 0 and done.stdout != path.read_bytes():
            write_file(path, done.stdout, again=True)
