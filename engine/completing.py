"""The path of one completion: attempts at the remote model, each of which is decided, enforced and recorded.

    llm ─(attempt)─> answer
     └──── wait ◄──┘ an error after which the permit allows another attempt

Nothing is sent before `llm` allows it. The text of an answer leaves only whole, and nothing of it is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from admission_adapters.llm import Attempt, RemoteModel
from admission_adapters.llm_answer import Tokens
from engine.drive import Call, Steps, Work
from engine.errors import EngineError, Exit
from engine.flow import Answer, Context, Services, answer
from engine.model import Job, Level, Mode, Pace, Permit, Result
from engine.points.llm import LlmLimits, target_of
from engine.points.registry import find
from engine.record.model_log import LoggedCost, LoggedTokens, ModelLogEntry

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """What to ask the remote model. `messages` are objects with `role` (system, user, assistant) and `content`.

    `target` is the host that the caller means, and `model` the name of the model; by default the configured ones.
    """

    messages: Sequence[dict[str, str]]
    max_output_tokens: int = 1_024
    stream: bool = False
    target: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the tokens cost at the prices of the policy."""

    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of the remote model, or why there is none; never raised.

    `text` is the answer, or None if no admitted answer came. `error` then has a stable word: the error of the last
    attempt, the code of the refusal, or the code of the fault. `tokens` sums all attempts, None if the provider
    reported no usage. `cost` is the cost of these tokens, None if the policy has no price for the model.
    """

    answers: tuple[Answer, ...]
    text: str | None = None
    error: str | None = None
    tokens: Tokens | None = None
    cost: Cost | None = None

    @property
    def retries(self) -> int:
        """Requests that were sent after the first one."""
        return max(0, sum(one.result is not None for one in self.answers) - 1)

    @property
    def fault(self) -> EngineError | None:
        """The fault of the run; None for a refusal and for an error of the provider."""
        return next((one.fault for one in self.answers if one.fault is not None), None)

    @property
    def exit(self) -> Exit:
        """The exit code of the run: a request without an answer counts as refused."""
        if self.fault is not None:
            return self.fault.exit
        return Exit.ALLOW if self.text is not None else max(Exit.DENY, self.answers[-1].exit)


def complete(prompt: Prompt, services: Services, model: RemoteModel, context: Context) -> Steps[Completion]:
    """Ask the remote model, as often as the permits allow."""
    run = _Run(prompt, services, model, context)
    target = prompt.target if prompt.target is not None else (yield Call(run.target, Pace.SLOW))
    while True:
        found = yield from run.attempt(target)
        seconds = None if found is None else run.wait(found)
        if seconds is None:
            return run.done(found)
        yield Work(partial(model.pause, seconds))


class _Run:
    """One run: its answers so far, and what was counted."""

    def __init__(self, prompt: Prompt, services: Services, model: RemoteModel, context: Context) -> None:
        self._prompt, self._services, self._model, self._context = prompt, services, model, context
        self._answers: list[Answer] = []
        self._tokens: Tokens | None = None
        self._cost: Cost | None = None
        self._after = "none"

    def target(self) -> str:
        """The configured host, for a prompt that names none."""
        try:
            return target_of(self._services.gather_context.provider(), self._services.lookups)
        except EngineError:
            return ""  # the decision says what is wrong

    def attempt(self, target: str) -> Steps[Attempt | None]:
        """One attempt; None if it was refused or failed inside the engine."""
        request = {
            "target": target,
            "model": self._prompt.model,
            "messages": list(self._prompt.messages),
            "max_output_tokens": self._prompt.max_output_tokens,
            "stream": self._prompt.stream,
            "attempt": len(self._answers) + 1,
            "after": self._after,
        }
        brought: list[Attempt] = []

        def send(permit: Permit, job: Job) -> Result:
            ready = job.opened
            found = self._model.attempt(permit, job.input_digest, ready.url, ready.body, job.stop)
            entry = self._entry(permit.demand("llm", job.input_digest, LlmLimits), found)
            brought.append(found)
            return Result(found.error or "answered", entry.model_dump(mode="json", exclude_none=True))

        got = yield from answer(find("llm"), request, Mode.ENFORCE, self._services, self._context, send)
        self._answers.append(got)
        found = brought[0] if brought and got.fault is None else None
        self._after = found.error or "none" if found is not None else "none"
        return found

    def wait(self, found: Attempt) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        limits = self._answers[-1].decision.limits
        if not isinstance(limits, LlmLimits) or found.error not in limits.retry_errors:
            return None
        return self._model.wait(limits, found.retry_after)

    def done(self, found: Attempt | None) -> Completion:
        """The end of the run."""
        last = self._answers[-1]
        if found is None:
            fault = last.fault
            refusals = [one.code for one in last.decision.findings if one.level is not Level.WARN]
            code = refusals[0] if fault is None else fault.code
            return Completion(tuple(self._answers), None, code, self._tokens, self._cost)
        return Completion(tuple(self._answers), found.text, found.error, self._tokens, self._cost)

    def _entry(self, limits: LlmLimits, found: Attempt) -> ModelLogEntry:
        """Count an attempt, and write its entry."""
        tokens, cost = found.tokens, None
        if tokens is not None:
            cost = _cost(limits, tokens)
            so_far = self._tokens or Tokens(0, 0)
            self._tokens = Tokens(so_far.prompt + tokens.prompt, so_far.completion + tokens.completion)
            if cost is not None:
                before = Decimal(0) if self._cost is None else self._cost.amount
                self._cost = Cost(before + cost.amount, cost.currency)
        return ModelLogEntry(
            provider=limits.provider,
            host=limits.host,
            model=limits.model,
            prompt_digest=limits.prompt_digest,
            tokens=None if tokens is None else LoggedTokens(prompt=tokens.prompt, completion=tokens.completion),
            cost=None if cost is None else LoggedCost(amount=f"{cost.amount:f}", currency=cost.currency),
            retries=len(self._answers),
            error_class=found.error,
        )


def _cost(limits: LlmLimits, tokens: Tokens) -> Cost | None:
    """The exact cost of these tokens; None if the policy has no price for the model."""
    if not limits.prices:
        return None
    (price,) = limits.prices
    amount = (Decimal(price.prompt) * tokens.prompt + Decimal(price.completion) * tokens.completion) / _MILLION
    return Cost(amount, price.currency)
