"""What happens in a run of code, for a client that follows it: its place, its phases, and what its program prints.

A slow client delays no program: what waits for it is kept, and is no more than the permit lets a program print.
"""

from __future__ import annotations

import asyncio
import codecs
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.secrets.patterns import find_secrets
from engine.secrets.redaction import merged, redacted

if TYPE_CHECKING:
    from engine.api.streams import Following
    from engine.code.running import Phase

_CONTEXT = 1_024
"""Characters before a piece in which the beginning of a secret is looked for."""

_LARGE = 8 << 10
"""Characters whose secrets are looked for beside the event loop."""


class LiveText:
    """One stream as text without secrets, in whole lines; a secret whose end is missing is held back."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed = ""
        self._held = ""

    def take(self, data: bytes, *, last: bool = False) -> str:
        """What can be shown after these bytes; after the `last` ones, everything."""
        self._held += self._decoder.decode(data, last)
        text, begin = self._printed + self._held, len(self._printed)
        end = len(text) if last else max(text.rfind("\n"), text.rfind("\r")) + 1
        if end <= begin:
            return ""
        spans = merged(find_secrets(text))
        if not last:
            end = next((max(start, begin) for start, stop in spans if start < end <= stop), end)
        self._printed, self._held = text[max(0, end - _CONTEXT) : end], text[end:]
        pieces, at = [], begin
        for start, stop in spans:
            if stop > begin and start < end:
                pieces += [text[at : max(start, at)], redacted(text[start:stop])]
                at = min(stop, end)
        return "".join((*pieces, text[at:end]))

    def __len__(self) -> int:
        return len(self._held)


class LiveRun:
    """Takes what happens from any thread, and sends it on the event loop until it is closed."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, Any]] = deque()
        self._texts: dict[str, LiveText] = {}
        self._closed = False

    def place(self, number: int) -> None:
        """The place among those that wait."""
        self._take("waiting", {"place": number})

    def phase(self, name: Phase) -> None:
        """The phase that begins."""
        self._take("phase", {"phase": name})

    def output(self, stream: str, data: bytes) -> None:
        """The next bytes of `stdout` or `stderr`."""
        self._take(stream, bytearray(data))

    def close(self) -> None:
        """Nothing more happens."""
        self._closed = True
        self._news.set()

    async def send(self) -> None:
        """Send what happens, until everything is sent after `close`."""
        while True:
            await self._news.wait()
            self._news.clear()
            with self._lock:
                taken, self._waiting = self._waiting, deque()
            for kind, what in taken:
                await (self._print(kind, what) if isinstance(what, bytearray) else self._send({"type": kind, **what}))
            if self._closed and not self._waiting:
                for stream in self._texts:
                    await self._print(stream, b"", last=True)
                return

    def _take(self, kind: str, what: Any) -> None:
        with self._lock:
            before, data = self._waiting[-1] if self._waiting else ("", None)
            if before == kind and isinstance(data, bytearray):
                data.extend(what)
            else:
                self._waiting.append((kind, what))
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._news.set)

    async def _print(self, stream: str, data: bytes | bytearray, *, last: bool = False) -> None:
        text = self._texts.setdefault(stream, LiveText())
        if len(data) + len(text) > _LARGE:
            clear = await asyncio.to_thread(lambda: text.take(bytes(data), last=last))
        else:
            clear = text.take(bytes(data), last=last)
        if clear:
            await self._send({"type": "output", "stream": stream, "text": clear})

    async def _send(self, event: dict[str, Any]) -> None:
        await self._following.put(event)
