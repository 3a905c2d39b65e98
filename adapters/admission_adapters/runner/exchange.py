"""One request of a runner and its answer: nothing is followed, retried or read from the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from admission_adapters.stoppable import WasStoppedError, run_until
from admission_adapters.trust import client_tls
from engine.model import StopSignal


class NoAnswerError(Exception):
    """There is no answer that can be passed on; the text states why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of an exchange, and the authorities that it trusts (PEM); None for those of certifi."""

    seconds: float  # from connecting to the last byte of the answer
    answer_bytes: int
    ca_file: Path | None = None


def exchange(
    bounds: Bounds, method: str, url: httpx.URL | str, document: Any, headers: Mapping[str, str], stop: StopSignal
) -> tuple[int, bytes]:
    """Send this JSON, if it is not None, and return the status and the answer; blocks. `stop` closes the connection.

    Raises NoAnswerError, and WorkError for a file of authorities that cannot be read.
    """
    context = client_tls(bounds.ca_file)

    async def whole() -> tuple[int, bytes]:
        data = bytearray()
        async with (
            asyncio.timeout(bounds.seconds),
            httpx.AsyncClient(
                verify=context, timeout=bounds.seconds, trust_env=False, follow_redirects=False
            ) as client,
            client.stream(method, url, json=document, headers=headers) as response,
        ):
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > bounds.answer_bytes:
                    raise NoAnswerError(f"its answer is larger than {bounds.answer_bytes} bytes")
        return response.status_code, bytes(data)

    try:
        return run_until(stop, whole())
    except WasStoppedError as error:
        raise NoAnswerError("the run was stopped") from error
    except (TimeoutError, httpx.TimeoutException) as error:
        raise NoAnswerError(f"it did not answer within {bounds.seconds:g} seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise NoAnswerError("it cannot be reached, or closed the connection") from error
