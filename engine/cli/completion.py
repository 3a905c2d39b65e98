"""`engine completion SHELL`: completion of commands, options and their values in a shell."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from engine.cli.outputs import print_text

_VARIABLE = "_ENGINE_COMPLETE"
"""Set by the script of a shell that asks for completions."""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options and values in a shell.

    bash: write it to ~/.local/share/bash-completion/completions/engine

    zsh: write it to a file _engine in a folder of $fpath

    fish: write it to ~/.config/fish/completions/engine.fish
    """
    from typer._completion_shared import get_completion_script

    print_text(get_completion_script(prog_name="engine", complete_var=_VARIABLE, shell=shell))


def prepare() -> None:
    """Let typer answer a shell that asks for completions."""
    if _VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
