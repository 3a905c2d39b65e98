"""`engine model ask FILE`: one completion of the remote model, each attempt decided and recorded."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.formats import answers_text
from engine.cli.inputs import text_of
from engine.cli.outputs import json_text, print_text
from engine.cli.terminal import remark
from engine.cli.waiting import during
from engine.documents.files import counted
from engine.settings import ReadLimits

if TYPE_CHECKING:
    from engine.completing import Completion
    from engine.engine import Engine

app = typer.Typer()

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters; the answer of a model may not control the terminal."""

_FIXES = {
    "answer_too_large": "have request.max_answer_bytes in policy/llm.yaml raised, or lower --max-tokens",
    "deadline_exceeded": "raise OPENAI_TIMEOUT_SECONDS, at most to request.seconds in policy/llm.yaml",
    "finish_not_admitted": "have its end added to request.finish_reasons in policy/llm.yaml",
    "key_refused": "check the key and what your account may ask",
    "other_model": "compare the name that the provider answers with; have it added to answers_as in policy/llm.yaml",
    "usage_missing": "leave out --stream, or have request.unmetered_answers in policy/llm.yaml set to true",
}
"""What to do about an error that does not pass by itself."""


@app.command()
@options.sourced(*options.CALLER, "state", *options.SERVED, "values")
def ask(
    sources: options.Sources,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Prompt as text; - reads standard input.")],
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System message before the prompt.")] = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, metavar="N", help="Maximum number of tokens of the answer.")
    ] = 1_024,
    stream: Annotated[bool, typer.Option("--stream", help="Receive the answer as a stream.")] = False,
    target: Annotated[
        str | None, typer.Option("--host", metavar="NAME", help="Expected host; any other configured host is refused.")
    ] = None,
    env_file: options.EnvFile = None,
    ca_file: options.CaFile = None,
    how: options.Output = "text",
) -> None:
    """Ask the remote model and print its answer.

    The model is that of AGENT_DATA_LLM_BASE_URL, AGENT_DATA_API_KEY and AGENT_DATA_LLM_MODEL, or of OPENAI_API_KEY;
    policy/llm.yaml must admit it. Exits with 0 if it answered, and with 1 if the request was refused or failed.
    """
    from engine.completing import Prompt

    messages = [] if system is None else [{"role": "system", "content": options.text(system) or ""}]
    messages.append({"role": "user", "content": text_of(file, ReadLimits().document_bytes, "prompt")})
    prompt = Prompt(messages, max_tokens, stream, options.text(target))
    with sources.engine("llm", ca_file=ca_file, env_file=env_file) as engine:
        options.report_lowered(engine, "llm")
        with during("waiting for the remote model"):
            done = engine.complete(prompt, sources.context())
        if done.fault is not None and how == "text":
            raise done.fault
        text = _people(engine, done) if how == "text" else json_text(_document(done))
    print_text(text)
    raise typer.Exit(done.exit)


def _document(done: Completion) -> dict[str, object]:
    tokens, cost = done.tokens, done.cost
    return {
        "text": done.text,
        "error": done.error,
        "tokens": None if tokens is None else {"prompt": tokens.prompt, "completion": tokens.completion},
        "cost": None if cost is None else {"amount": f"{cost.amount:f}", "currency": cost.currency},
        "retries": done.retries,
        "decisions": [one.decision.model_dump(mode="json") for one in done.answers],
    }


def _people(engine: Engine, done: Completion) -> str:
    """The answer; or what was refused and why, or which error the last attempt ended with."""
    if any(one.result is not None for one in done.answers):
        remark(f"engine: {_counted(done)}")
    if done.text is not None:
        return (_CONTROL.sub("\N{REPLACEMENT CHARACTER}", done.text) if sys.stdout.isatty() else done.text) + "\n"
    if done.answers[-1].result is not None:
        fix = f"fix: {_FIXES[done.error]}\n" if done.error in _FIXES else ""
        return f"no answer: {done.error} (docs/remote-model.md)\n{fix}"
    return answers_text(engine, "remote model", done.answers[-1:], done.exit)


def _counted(done: Completion) -> str:
    tokens, cost = done.tokens, done.cost
    used = "no tokens counted" if tokens is None else f"{tokens.prompt} + {counted(tokens.completion, 'token')}"
    price = "cost unknown" if cost is None else f"{cost.amount:f} {cost.currency}"
    return f"{used}, {price}, {done.retries} {'retry' if done.retries == 1 else 'retries'}"
