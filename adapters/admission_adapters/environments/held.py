"""An environment that is held open: its database, what happened to it, and the checkpoints that undo it.

A checkpoint counts only while the file has the digest that the trajectory states for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from admission_adapters.digests import digest
from admission_adapters.environments.build import BASE, CURRENT, DESCRIPTION, MOST_DESCRIPTION, TRAJECTORY, About
from admission_adapters.environments.database import TABLES, count, limited
from admission_adapters.environments.trajectory import Trajectory, changed
from admission_adapters.files.artifacts import opened_folder
from admission_adapters.files.new_files import create, existing, names_in
from admission_adapters.tools.effects import record_side_effect, within_call
from engine.errors import GatherError, WorkError
from engine.model import HeldEnvironment

_DRAFT = ".draft.sqlite"
_CHUNK = 256 << 10
_CHECKPOINT, _UNDO_POINT = "checkpoint", "undo_point"
"""Events of the trajectory that name a file which can be restored."""

_DAMAGED = "the database is damaged"

_APPEND = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC

Change = Callable[[sqlite3.Connection], object]
"""Changes rows within a transaction."""


class OpenEnvironment:
    """A built environment, held by this process alone. A context manager; threads may share it.

    Raises WorkError: `engine.environment_in_use`, `engine.environment_changed`, `engine.checkpoint_missing`,
    `engine.environment_expired` after the time for which one of its records may be kept, also while it is open;
    `engine.work_failed` for a folder that cannot be read or written. Raises GatherError for any other folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = Path(folder).absolute()
        self._lock = threading.RLock()
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}
        with ExitStack() as stack:
            if not self._path.is_dir():
                raise _no_environment()
            self._folder = stack.enter_context(opened_folder(self._path))
            _alone(self._folder)
            self.about = _description(self._folder)
            self.name, self.holds = self.about.environment, self.about.holds
            self._demand_kept()
            if self._sha256(BASE) != self.about.base_sha256:
                raise changed("its database as built")
            with suppress(FileNotFoundError):  # a process was killed while it restored
                os.unlink(_DRAFT, dir_fd=self._folder)
            file = os.fdopen(os.open(TRAJECTORY, _APPEND, dir_fd=self._folder), "r+b", buffering=0)
            self._trajectory = Trajectory(stack.enter_context(file))
            self._database = self._connected()
            stack.callback(self._close_database)
            self._recover()
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open.close()

    @property
    def trajectory(self) -> list[dict[str, Any]]:
        """Every change since it was built, the first one first."""
        return [dict(line) for line in tuple(self._trajectory.lines)]

    def read(self, query: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query, which is a constant of a reviewed tool."""
        with self._lock:
            self._demand_kept()
            return self._database.execute(query, tuple(values)).fetchall()

    def change(self, operation: str, effect: str, target: str, apply: Change, *, undoable: bool = False) -> None:
        """Change rows in one transaction: reported as a side effect of the call, logged, then committed.

        An `undoable` one is made only of a state with a checkpoint: another thread may have changed the state since
        the call was decided on.
        Raises ToolStoppedError for a call that is over, or WorkError outside of a permitted call; nothing is changed.
        """
        with self._lock, ExitStack() as stack:
            self._demand_kept()
            if undoable and within_call():
                self.undo_point()
            stack.enter_context(self._transaction())
            apply(self._database)
            line = self._trajectory.next
            self._database.execute("UPDATE environment_state SET line = ?", (line,))
            name = f"{operation}-{line}"
            record_side_effect(effect, id=name, target=target)
            facts = {"effect": name, "class": effect, "target_digest": digest(target.encode("utf-8", "surrogatepass"))}
            self._trajectory.append("changed", line, count(self._database, self.holds), **facts)

    def checkpoint(self) -> dict[str, Any]:
        """Keep the current state; returns the line of the trajectory, with `name`.

        The oldest checkpoint is removed if there are too many.
        """
        return self._kept(_CHECKPOINT)

    def _kept(self, event: str) -> dict[str, Any]:
        with self._lock, opened_folder(self._path):
            self._demand_kept()
            name = f"checkpoint-{self._trajectory.next}.sqlite"
            with suppress(FileNotFoundError):  # a process was killed before it logged this one
                os.unlink(name, dir_fd=self._folder)
            _, sha256 = create(self._folder, name, (self._database.serialize(),), self.about.database_bytes)
            os.fsync(self._folder)
            state, rows = self._logged()
            kept = self._trajectory.append(event, state, rows, name=name, sha256=sha256)
            same = [line for line in self.checkpoints() if line["event"] == event]
            for old in same[: -self.about.checkpoints]:
                with suppress(FileNotFoundError):
                    os.unlink(old["name"], dir_fd=self._folder)
            return dict(kept)

    def restore(self, name: str) -> dict[str, Any]:
        """Go back to a checkpoint; every change since is undone. Returns the line of the trajectory."""
        with self._lock:
            if (found := self._intact(name)) is None:
                raise WorkError(
                    "there is no intact checkpoint of this name",
                    remedy="use a name that `checkpoint` returned, or reset the environment",
                    code="engine.checkpoint_missing",
                )
            return self._replace(name, found["sha256"], "restored", found["state"], found["rows"])

    def reset(self) -> dict[str, Any]:
        """Go back to what was built; every change is undone. Returns the line of the trajectory."""
        with self._lock:
            return self._replace(BASE, self.about.base_sha256, "reset", 0, self.about.rows)

    def undo_point(self) -> str:
        """A checkpoint of the current state: the last one if nothing was changed since, else a new one.

        Such checkpoints are counted by themselves: calls of an agent remove none that `checkpoint` made.
        """
        with self._lock:
            return self._current_checkpoint() or str(self._kept(_UNDO_POINT)["name"])

    def held(self, checkpoint: str | None) -> HeldEnvironment:
        """What can be undone now, and whether this checkpoint can be restored.

        Shown by the digests of the files that would be restored.
        """
        with self._lock:
            return HeldEnvironment(
                environment=self.name,
                built=self.about.base_sha256,
                reset=self._sha256(BASE) == self.about.base_sha256,
                checkpoint=self._current_checkpoint() is not None,
                restorable=None if checkpoint is None else self._intact(checkpoint) is not None,
            )

    def standing(self) -> tuple[int, int]:
        """The current state, as the number of the line that made it, and its number of rows."""
        with self._lock:
            return self._logged()

    def verify(self) -> list[str]:
        """The verifier of the environment: what differs from what was built and what the trajectory states."""
        with self._lock:
            found = self._trajectory.problems()
            if self._sha256(BASE) != self.about.base_sha256:
                found.append("the database as built was changed")
            try:
                return found + self._differences()
            except sqlite3.Error:
                return [*found, _DAMAGED]

    def _differences(self) -> list[str]:
        """What differs in the database in use. Raises sqlite3.Error for one that cannot be read."""
        if [row for (row,) in self._database.execute("PRAGMA integrity_check")] != ["ok"]:
            return [_DAMAGED]
        if _schema(self._database) != self._schema_as_built():
            return ["the tables are not those that were built"]
        if (self._state(), count(self._database, self.holds)) != self._logged():
            return ["the rows are not those that the trajectory leads to"]
        return []

    def _demand_kept(self) -> None:
        if time.time() > self.about.kept_until:
            raise WorkError(
                "a record of the environment may not be kept any longer",
                remedy="remove the folder; agree on a later day with the owner of the source, and build it again",
                code="engine.environment_expired",
            )

    def _current_checkpoint(self) -> str | None:
        state = self._state()
        same = (line["name"] for line in reversed(self.checkpoints()) if line["state"] == state)
        return next((str(name) for name in same if self._intact(name) is not None), None)

    def _intact(self, name: str) -> dict[str, Any] | None:
        """The line of a checkpoint whose file is the one that was kept."""
        found = [line for line in self.checkpoints() if line["name"] == name]
        sha256 = self._sha256(name)
        return found[-1] if found and sha256 and sha256 == found[-1].get("sha256") else None

    def checkpoints(self) -> list[dict[str, Any]]:
        """The lines of the trajectory about checkpoints that are there, the first one first."""
        there = set(names_in(self._folder))
        return [
            line
            for line in self._trajectory.lines
            if line["event"] in {_CHECKPOINT, _UNDO_POINT} and line.get("name") in there
        ]

    def _replace(self, source: str, sha256: str, event: str, state: int, rows: int) -> dict[str, Any]:
        with opened_folder(self._path):
            with suppress(FileNotFoundError):
                os.unlink(_DRAFT, dir_fd=self._folder)
            with existing(self._folder, source) as file:
                made = create(
                    self._folder,
                    _DRAFT,
                    iter(partial(file.read, _CHUNK), b""),
                    self.about.database_bytes,
                    mode=0o600,
                )
            if made[1] != sha256:
                raise changed("the file to be restored")
            self._database.close()  # leaves no journal that would be played into the other file
            try:
                line = self._trajectory.append(event, state, rows, sha256=sha256)
                os.rename(_DRAFT, CURRENT, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                os.fsync(self._folder)
            finally:
                self._database = self._connected()
                self._recover()
            return dict(line)

    def _connected(self) -> sqlite3.Connection:
        """The database in use. A transaction that a killed process left open is undone here."""
        if not stat.S_ISREG(os.stat(CURRENT, dir_fd=self._folder, follow_symlinks=False).st_mode):
            raise changed("its database is not a file")
        uri = f"{(self._path / CURRENT).as_uri()}?mode=rw"
        database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA synchronous = FULL")
            limited(database, self.about.database_bytes)
            as_built = _schema(database) == self._schema_as_built()
        except sqlite3.Error as error:
            database.close()
            raise changed("its database cannot be read") from error
        if not as_built:
            database.close()
            raise changed("its tables")
        return database

    def _close_database(self) -> None:
        self._database.close()  # the one in use, after a restore another one

    def _recover(self) -> None:
        """Log the state in which a killed process, or a full disk, left the database."""
        try:
            state, rows = self._state(), count(self._database, self.holds)
        except sqlite3.DatabaseError as error:
            raise changed("its database cannot be read") from error
        if (state, rows) == self._logged():
            return
        known = {0: self.about.rows} | {line["state"]: line["rows"] for line in self._trajectory.lines}
        if known.get(state) != rows:
            raise changed("its rows")
        self._trajectory.append("recovered", state, rows)

    def _logged(self) -> tuple[int, int]:
        last = self._trajectory.lines[-1] if self._trajectory.lines else {"state": 0, "rows": self.about.rows}
        return last["state"], last["rows"]

    def _state(self) -> int:
        found = self._database.execute("SELECT line FROM environment_state").fetchall()
        known = [line for (line,) in found if type(line) is int]
        return known[0] if len(known) == len(found) == 1 else -1

    def _schema_as_built(self) -> list[tuple[Any, ...]]:
        with sqlite3.connect(":memory:") as database:
            for table in TABLES[self.holds]:
                database.execute(table)
            found = _schema(database)
        database.close()
        return found

    @contextmanager
    def _transaction(self) -> Any:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            self._recover()
            raise

    def _sha256(self, name: str) -> str:
        """The SHA-256 of a file of the environment; read again only after it was touched."""
        try:
            with existing(self._folder, name) as file:
                found = os.fstat(file.fileno())
                mark = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                if self._known.get(name, ((), ""))[0] != mark:
                    self._known[name] = (mark, hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:
            return ""
        return self._known[name][1]


def _no_environment() -> GatherError:
    return GatherError(
        "there is no environment at this path",
        remedy="name the folder that `engine build` made, such as DIR/contacts_sqlite",
    )


def _alone(folder: int) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise WorkError(
            "the environment is in use by another process",
            remedy="wait until it is closed, or build another one",
            code="engine.environment_in_use",
        ) from error


def _description(folder: int) -> About:
    try:
        with existing(folder, DESCRIPTION) as file:
            data = file.read(MOST_DESCRIPTION + 1)
    except FileNotFoundError as error:
        raise _no_environment() from error
    try:
        about = About.model_validate_json(data)
    except ValueError as error:
        raise changed("its description") from error
    if about.holds not in TABLES:
        raise changed("its description")
    return about


def _schema(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
