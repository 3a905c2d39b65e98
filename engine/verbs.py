"""The paths of the verbs that both engines have, and the verbs that only block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.assembly import Assembly
from engine.drive import Steps, run
from engine.errors import EngineError, GatherError
from engine.flow import Answer, Context, checked, mistyped
from engine.idempotency import answer_once
from engine.model import Mode
from engine.points.registry import find
from engine.work import Executor

if TYPE_CHECKING:
    from engine.code.result import CodeRun
    from engine.code.running import RunWatcher
    from engine.completing import Completion, Prompt
    from engine.episodes.actors import Actor
    from engine.episodes.definition import EpisodeDefinition
    from engine.episodes.result import Episode
    from engine.exporting import Exported
    from engine.fetching import Fetched, FetchOrder
    from engine.memory import Memory, NewEntry
    from engine.shell import ShellRun


class Verbs(Assembly):
    """What both engines do, as steps: `Engine` performs them and blocks, `AsyncEngine` does so on an event loop."""

    def _steps(
        self, point: str, request: Any, mode: Mode, context: Context, executor: Executor | None
    ) -> Steps[Answer]:
        found = find(point)
        checked(context)
        if executor is not None and not callable(executor):
            raise mistyped("the executor", executor, "pass a function; pass a context by its name: `context=…`")
        if found.act and mode is Mode.ENFORCE and not isinstance(request, EngineError):
            request = GatherError(  # an act is recorded only when it is taken
                f"a decision at point `{point}` is enforced only together with what it permits",
                remedy=f"use {found.act}; a dry run only decides: `?mode=check`, `engine decide --now TIME`, or `check`"
                " in Python",
                code="engine.request_invalid",
            )
        if point == "provisioning":  # wherever it is asked, an agent that is allowed is mounted
            from engine.provisioning import mounting

            executor = mounting(self.opened, context)
        return answer_once(found, request, mode, self.opened, context, executor)

    def _code_steps(self, request: Any, context: Context, watch: RunWatcher | None) -> Steps[CodeRun]:
        from engine.code.idempotency import run_code
        from engine.code.running import RunWatcher

        return run_code(request, self.opened, self.executors.machine(), checked(context), watch or RunWatcher())

    def _fetch_steps(self, order: FetchOrder, context: Context) -> Steps[Fetched]:
        from engine.fetching import fetch_once

        return fetch_once(order, self.opened, self.executors.fetcher, checked(context))

    def get_url(
        self,
        url: str,
        *,
        hosts: tuple[str, ...],
        license: str,  # noqa: A002  (its name everywhere)
        alias: str = "http-get",
        max_requests: int = 1,
        context: Context = Context(),  # noqa: B008  (frozen)
    ) -> Fetched:
        """Fetch one address into memory, under the same decisions as a source bundle: `content` of the result.

        Naming `hosts` enables it; `alias` stands for them in events. Blocks: with an `AsyncEngine`, call it in a
        thread of its own.
        """
        from engine.fetching import FetchOrder, get

        order = FetchOrder((url,), Path(alias), license, hosts, alias, max_requests)
        return run(get(order, self.opened, self.executors.fetcher, checked(context)))

    def run_shell(
        self,
        text: str,
        *,
        hosts: tuple[str, ...] = (),
        folder: Path | None = None,
        profile: str = "shell",
        context: Context = Context(),  # noqa: B008  (frozen)
    ) -> ShellRun:
        """Run a command as text in the sandbox. Naming `hosts` gives it a way out to them, where the policy permits it.

        Every connection is decided on at point `network`. It gets copies of the files of `folder` in `inputs/`; those
        that it leaves in `artifacts/` and may keep are written into `folder`. Blocks: with an `AsyncEngine`, call it in
        a thread of its own. Raises GatherError for a folder that cannot be read.
        """
        from admission_adapters.trust import authorities
        from engine.shell import ShellOrder, run_shell
        from engine.shell_folder import files_in, put_back

        order = ShellOrder(text, hosts, profile, {} if folder is None else files_in(folder))
        trusted = partial(authorities, self.settings.ca_file)
        done = run(run_shell(order, self.opened, self.executors.machine().backend, trusted, checked(context)))
        return done if folder is None else done.without(put_back(folder, done.files))

    def get_media(
        self,
        url: str,
        *,
        kind: str,
        media_type: str,
        license: str,  # noqa: A002
        alias: str = "media",
        context: Context = Context(),  # noqa: B008
    ) -> Fetched:
        """Fetch media by URL into memory: decided on at point `media`, then as by `get_url`. Blocks as that does."""
        from engine.fetching import get_media

        media = {"kind": kind, "url": url, "media_type": media_type}
        return run(get_media(media, license, alias, self.opened, self.executors.fetcher, checked(context)))

    def _complete_steps(self, prompt: Prompt, context: Context) -> Steps[Completion]:
        from engine.completing import complete

        return complete(prompt, self.opened, self.executors.remote_model(), checked(context))

    def _episode_steps(
        self,
        requests: Sequence[tuple[str | None, EpisodeDefinition]],
        actors: Mapping[str, Actor],
        context: Context,
        claims: ExitStack,
    ) -> list[Steps[Episode]]:
        """The paths of episodes, which are claimed until `claims` is closed. Raises GatherError or WorkError."""
        from engine.episodes.recorded import recorded
        from engine.episodes.run import cast, episode_steps

        parts, folder = self.opened, self.executors.transcripts
        own = replace(checked(context), idempotency_key=None, approval=None)
        casts = [cast(one, actors, lambda prompt: run(self._complete_steps(prompt, own))) for _, one in requests]
        names = [name or parts.new_id() for name, _ in requests]
        for name in names:
            claims.enter_context(folder.claimed(name))
        known = recorded(self.settings.state, folder, {name: one for name, one in requests if name})
        return [
            episode_steps(parts, context, folder, name, one, everyone, known.get(name))
            for name, (_, one), everyone in zip(names, requests, casts, strict=True)
        ]

    def _build_steps(self, path: Path, into: Path, digest: str | None, context: Context) -> Steps[Answer]:
        from engine.environments import build_once

        return build_once(self.opened, Path(path), Path(into), digest, checked(context))

    def _export_steps(self, samples: Path, into: Path, context: Context) -> Steps[Exported]:
        from engine.exporting import export_steps

        return export_steps(self.opened, Path(samples), Path(into), checked(context))

    def _write_steps(self, new: NewEntry, context: Context) -> Steps[Memory]:
        from engine.memory import write_steps

        return write_steps(self.opened, new, checked(context))

    def _read_steps(self, id_: str | None, context: Context, *, forget: bool = False) -> Steps[Memory]:
        from engine.memory import read_steps

        return read_steps(self.opened, id_, checked(context), forget=forget)
