"""`--watch`, for development: activate the policy again when a file of its folders has changed."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.control import reload

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.settings import Settings

_SECONDS = 0.5
"""Between two looks; two equal looks after a change mean that whoever writes is done."""


async def watch(api: Api, settings: Settings) -> None:
    """Look at the content of the folders for ever."""
    folders = (settings.rego, settings.policy, settings.recipe)
    active = last = await asyncio.to_thread(content_digest, folders)
    while True:
        await asyncio.sleep(_SECONDS)
        now = await asyncio.to_thread(content_digest, folders)
        if now == last and now != active:
            active = now
            await reload(api, "the folders of the policy changed")
        last = now


def content_digest(folders: tuple[Path, ...]) -> str:
    """One digest over names and contents of all files below; of whatever can be read."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except OSError:
                content = b"?"
            found.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            found.update(content)
    return found.hexdigest()
