"""Options that several commands share, and what they mean for the settings."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from engine import times
from engine.cli.terminal import notice
from engine.cli.usage import not_one_of
from engine.cli.waiting import during
from engine.documents.files import printable
from engine.errors import EngineError, GatherError, PolicyError, Problem
from engine.settings import Settings
from engine.state.address import SCHEME, checked
from engine.state.rows import AUDIENCE

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Context


def text(value: str | None) -> str | None:
    """The record accepts only text, but the shell passes any bytes."""
    try:
        (value or "").encode("utf-8")
    except UnicodeEncodeError as error:
        raise typer.BadParameter("it is not UTF-8 text") from error
    return value


def moment(text: str) -> datetime:
    """A time of RFC 3339."""
    try:
        return times.moment(text)
    except ValueError as error:
        raise typer.BadParameter("write the time as 2026-11-21T00:00:00Z") from error


def name(value: Any) -> Any:
    """A name that a list can show on one line, or several, or none."""
    for one in _each(value):
        if not (one.strip() and one.isprintable() and len(one) <= _LONGEST_NAME):
            raise typer.BadParameter(f"a name has 1 to {_LONGEST_NAME} printable characters")
    return value


def row_id(value: str) -> str:
    """The id of a row of the state."""
    if re.fullmatch(r"[0-9a-f]{8,32}", value) is None:
        raise typer.BadParameter(f"`{printable(value, 40)}` is not an id: `list` prints ids, such as 44b03b250e0547f8")
    return value


def audience(value: str | None) -> str | None:
    """The name of a server in a token."""
    if value is not None and re.fullmatch(AUDIENCE, value) is None:
        raise typer.BadParameter("use 1 to 128 ASCII letters, digits and punctuation, without spaces")
    return value


def _digest(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        raise typer.BadParameter("write it as sha256: and 64 hex digits")
    return value


def _each(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


_LONGEST_NAME = 256

words = partial(typer.Option, callback=text)
"""An option for text that is recorded."""
folder = partial(typer.Option, metavar="DIR", exists=True, file_okay=False)
file = partial(typer.Option, metavar="FILE", exists=True, dir_okay=False)
"""Options for a folder and for a file that exist."""
read = partial(typer.Option, "-i", "--input", metavar="FILE")
"""An option for the file that a command reads in place of standard input."""
Request = Annotated[
    Path | None, read(help="Request as JSON or YAML (default: standard input); at point source also the folder itself.")
]

CaFile = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        envvar="ENGINE_CA_FILE",
        help="Certificate authorities (PEM) to trust when connecting to other hosts (default: those of certifi).",
    ),
]
EnvFile = Annotated[
    Path | None, file("--env-file", help="Variables of the remote model as lines NAME=value, such as .env.")
]


def known_point(value: Any) -> Any:
    """A decision point, or several, or none."""
    from engine.points.registry import POINTS

    for one in _each(value):
        if one not in POINTS:
            raise typer.BadParameter(not_one_of(one, POINTS))
    return value


def points(incomplete: str) -> list[str]:
    """The decision points that begin like this, for the completion of a shell."""
    from engine.points.registry import POINTS

    return [one for one in POINTS if one.startswith(incomplete)]


POINT: dict[str, Any] = {"metavar": "POINT", "callback": known_point, "autocompletion": points}
"""What options and arguments for decision points share."""
Point = Annotated[str, typer.Argument(help="Decision point, such as source or license.", **POINT)]
_STATE_VARIABLE = "ENGINE_STATE_DIR"


@dataclass(frozen=True, slots=True)
class StateAt:
    """Where the state is: a folder, or a PostgreSQL database that engines share.

    With a database, the record and everything of this machine stay in the default folder.
    """

    folder: Path | None = None
    database: str | None = None

    def __str__(self) -> str:
        return self.database or str(self.folder)


def _state_at(text: str) -> StateAt:
    if text.startswith(SCHEME):
        try:
            return StateAt(database=checked(text))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    folder = Path(text)
    if os.path.isfile(folder):  # noqa: PTH113  (a folder that this user may not enter is refused later)
        raise typer.BadParameter(f"Directory '{text}' is a file.")
    return StateAt(folder)


def _not_from_variable(value: StateAt | None) -> StateAt | None:
    """What was named, and None for the folder of the variable, which is the default of the settings."""
    return None if value is None or str(value) == os.environ.get(_STATE_VARIABLE) else value


State = Annotated[
    StateAt | None,
    typer.Option(
        metavar="DIR|URI",
        parser=_state_at,
        envvar=_STATE_VARIABLE,
        callback=_not_from_variable,
        help="State folder, or postgresql://… for a shared state (default: the user's state folder).",
    ),
]
Digest = Annotated[
    str | None,
    typer.Option(metavar="SHA256", help="Expected sha256:… digest; any other bundle is refused.", callback=_digest),
]
ReleaseKey = Annotated[
    Path | None, file("--release-key", envvar="ENGINE_RELEASE_KEY", help="Public key (PEM) that verifies the release.")
]
Output = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]
"""Words for people, or a document for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where state, rules and values of a command come from, and who asks: the options that `sourced` gave it."""

    principal: Annotated[
        str | None, words(metavar="NAME", help="Principal to decide for (default: the current user).")
    ] = None
    run: Annotated[str | None, words(metavar="ID", help="Id of the pipeline run to record.")] = None
    approval: Annotated[str | None, words(metavar="ID", help="Granted approval for this request.")] = None
    state: State = None
    policy: Annotated[
        Path | None,
        folder(envvar="ENGINE_POLICY", help="Your policy folder, or a folder of all values (default: policy/)."),
    ] = None
    rego: Annotated[Path | None, folder(envvar="ENGINE_REGO", help="Folder of Rego rules (default: rego/).")] = None
    recipe: Annotated[
        Path | None,
        folder(
            envvar="ENGINE_RECIPE",
            help="Folder of a recipe, which selects rules and values (default: bundles/default).",
        ),
    ] = None
    release: Annotated[
        Path | None,
        folder(envvar="ENGINE_RELEASE", help="Signed release to use in place of the folders of rules and values."),
    ] = None
    releases: Annotated[
        Path | None,
        folder(
            envvar="ENGINE_RELEASES",
            help="Folder of signed releases; the one that was activated for the engines of the state is used.",
        ),
    ] = None
    release_key: ReleaseKey = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Override a policy value, such as licenses.licenses.MIT.decision=refuse."
        ),
    ] = None
    now: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME", help="Time to decide at (default: now), such as 2026-11-21T00:00:00Z.", parser=moment
        ),
    ] = None

    def context(self) -> Context:
        """The caller, by default the current user, the run, and the approval of the request."""
        from engine.flow import Context
        from engine.model import Caller, Via

        caller = Caller(via=Via.PROCESS, principal=self.principal or user())
        return Context(caller=caller, run=self.run, approval=self.approval)

    def settings(self) -> Settings:
        """The settings with these options in the place of the defaults. Raises GatherError."""
        released = self.release or self.releases
        if released is not None and (self.policy or self.rego or self.recipe or self.values):
            raise typer.BadParameter(
                "a release brings its own rules and values: leave out --policy, --rego, --recipe and --values",
                param_hint="--release, --releases",
            )
        if self.release is not None and self.releases is not None:
            raise typer.BadParameter("give one release, or a folder of several", param_hint="--release, --releases")
        own = self.policy if self.policy is not None and (self.policy / "recipe.yaml").exists() else None
        if own is not None and self.recipe is not None:
            raise typer.BadParameter("it names a recipe already", param_hint="--policy")
        if (released is None) != (self.release_key is None):
            option = "--release" if self.releases is None else "--releases"
            raise typer.BadParameter(f"give {option} and --release-key together", param_hint=option)
        self._look()

        try:
            default = Settings()
        except RuntimeError as error:  # what Path.home() raises
            raise GatherError(
                "this user has no home folder", remedy="set ENGINE_STATE_DIR and XDG_CACHE_HOME, or HOME"
            ) from error
        return replace(
            default,
            state=(self.state and self.state.folder) or default.state,
            database=(self.state and self.state.database) or default.database,
            policy=default.policy if own else self.policy or default.policy,
            rego=self.rego or default.rego,
            recipe=own or self.recipe or default.recipe,
            release=self.release,
            releases=self.releases,
            release_key=self.release_key,
        )

    def _look(self) -> None:
        """Refuse folders that cannot be what they are given for."""
        for folder, inside, hint in (
            (self.policy, ("recipe.yaml", "levels.yaml"), "--policy"),
            (self.rego, ("admission",), "--rego"),
            (self.recipe, ("recipe.yaml",), "--recipe"),
        ):
            if folder is not None and not any((folder / one).exists() for one in inside):
                raise typer.BadParameter(f"`{printable(str(folder))}` has no {' or '.join(inside)}", param_hint=hint)

    @contextmanager
    def engine(
        self,
        *points: str,
        progress: Callable[[str, int, int], None] = lambda *_: None,
        ca_file: Path | None = None,
        env_file: Path | None = None,
        remote_model: bool = True,
        enable_mcp_adapter: bool = False,
        follow: bool = False,
    ) -> Iterator[Engine]:
        """An engine for these decision points, or for all. Reports on standard error what a crash left unfinished.

        A command that goes on for long may `follow` the releases that are activated meanwhile.
        """
        from engine.engine import Engine

        opening = Engine(
            replace(self.settings(), ca_file=ca_file, env_file=env_file, remote_model=remote_model),
            values=tuple(self.values or ()),
            now=lambda: self.now or datetime.now(UTC),
            progress=progress,
            points=frozenset(points) or None,
            enable_mcp_adapter=enable_mcp_adapter,
            follow=follow,
            try_policy=self._names_policy,
        )
        with ExitStack() as stack:
            with during("reading the policy and starting OPA"):
                engine = stack.enter_context(opening)
            if isinstance(fault := getattr(engine.opa, "fault", None), PolicyError):
                refuse_values(fault.problems)
            for cut in engine.recovered:
                notice(f"{cut.bytes} unfinished bytes were cut from the end of {cut.file} and kept in {cut.kept}")
            self._report_other_policy(engine)
            yield engine

    @property
    def _names_policy(self) -> bool:
        """Whether a policy is named, in place of the one that the engines of the state may have agreed on."""
        return any((self.policy, self.rego, self.recipe, self.release, self.values))

    def _report_other_policy(self, engine: Engine) -> None:
        """Report on standard error that the engines of the state agreed on another policy than the one named."""
        if not self._names_policy or engine.policy is None:
            return
        with suppress(EngineError):  # then nothing is decided
            agreement = engine.store().agreement()
            agreed = agreement.active or agreement.next
            if agreed is not None and agreement.binding and engine.policy.digest not in agreement.served:
                name = f"release {agreed.sequence} of `{printable(agreed.name)}`"
                notice(f"the engines of this state decide under {name}, not under this policy")


def refuse_values(problems: Sequence[Problem]) -> None:
    """Raise a usage error where all that is wrong with a policy is what `--values` put into it."""
    from engine.policy_bundle.values import OVERRIDES

    if all(one.where.file == OVERRIDES for one in problems):
        text = "\n".join(f"{one.where.field}: {one.message}\n  {one.remedy}" for one in problems)
        raise typer.BadParameter(text, param_hint=OVERRIDES)


RULES = ("policy", "rego", "recipe")
SERVED = (*RULES, "release", "releases", "release_key")
CALLER = ("principal", "run")
DECIDING = (*CALLER, "approval")
"""Options of `Sources` for folders of rules and values, for these or signed releases, and for who asks."""

_POLICIES = {"policy", "rego", "recipe", "values", "release"}


def _command_line_first(values: dict[str, Any]) -> dict[str, Any]:
    """The options of a command; releases of variables are left out if the command line names a policy."""
    named = {name for name, value in values.items() if value and not _of_variable(name, value)}
    if named & _POLICIES:
        values = {
            name: None if name in {"release", "releases"} and name not in named else value
            for name, value in values.items()
        }
        if not (values.get("release") or values.get("releases") or "release_key" in named):
            values["release_key"] = None
    return values


def _of_variable(name: str, value: Any) -> bool:
    variable = os.environ.get(f"ENGINE_{name.upper()}")
    return isinstance(value, Path) and bool(variable) and Path(str(variable)) == value


Command: TypeAlias = Callable[..., None]


@cache
def _annotations() -> dict[str, Any]:
    return get_type_hints(Sources, include_extras=True)


def sourced(*names: str) -> Callable[[Command], Command]:
    """Give a command these options of `Sources`, after its own, in the place of its parameter `sources`."""
    hints, kind = _annotations(), inspect.Parameter.KEYWORD_ONLY
    extra = [inspect.Parameter(name, kind, default=None, annotation=hints[name]) for name in names]

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "sources"]

        @wraps(command)
        def run(**values: Any) -> None:
            command(sources=Sources(**_command_line_first({name: values.pop(name) for name in names})), **values)

        run.__signature__ = signature.replace(parameters=[*own, *extra])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *extra)}
        return run

    return decorate


def state_folder(state: StateAt | None) -> Path:
    """The state folder of a command that needs nothing else of the engine."""
    return Sources(state=state).settings().state


def user() -> str:
    """The principal of the current user, as the kernel knows it."""
    from engine.administration.users import user_of

    return user_of(os.getuid())


def report_lowered(engine: Engine, point: str) -> None:
    """Report on standard error which refusals of a point the served policy has lowered or waived."""
    policy = engine.policy
    if policy is None:
        return
    now = engine.now()
    notices = [one.summary(now) for one in policy.lowered if one.point == point]
    notices += [one.summary(policy.idle(one, now)) for one in policy.waivers if one.point == point]
    for text in notices:
        notice(printable(text, 1_500))
