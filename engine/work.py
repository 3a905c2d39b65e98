"""From permit and executor to result: approved work runs only through an adapter that checks the permit."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import EngineError, WorkError
from engine.model import Job, Permit, Result

__all__ = ["Executor", "Job", "work"]


Executor = Callable[[Permit, Job], Result]
"""An adapter: demands, before anything else, that the permit is for exactly this job."""


def work(permit: Permit, executor: Executor, job: Job) -> Result:
    """Run the executor. Raises WorkError for any error of the executor."""
    try:
        return executor(permit, job)
    except EngineError:
        raise
    except Exception as error:
        raise WorkError(
            f"the approved work failed with {type(error).__name__}",
            remedy="see the adapter's own log, then repeat the request",
        ) from error
