"""A running `engine workbench` as a user has it, and the plainest browser to look at its pages with."""

from __future__ import annotations

import http.client
import resource
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.api.serving import environment, started, until
from tests.warm import Forked

FORM = "application/x-www-form-urlencoded"
_LINK = "engine: open "
_START_SECONDS = 120.0
"""For a start or a page that builds a policy, and runs its tests and cases, on a busy machine; a hang fails."""


class Html(HTMLParser):
    """A page: its text, its elements, and the fields of its forms."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts.append(" ")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All words, with single spaces between them."""
        return " ".join("".join(self.texts).split())

    def values(self, tag: str, attribute: str) -> list[str]:
        """An attribute of all elements of a kind that have it."""
        return [found[attribute] for name, found in self.elements if name == tag and attribute in found]

    def field(self, name: str) -> str:
        """The value of the first input of this name."""
        return next(found["value"] for tag, found in self.elements if tag == "input" and found.get("name") == name)


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def html(self) -> Html:
        return Html(self.body)


@dataclass(slots=True)
class Visitor:
    """One browser: what it is asked to send, and the cookie that it was given."""

    port: int
    cookie: str = ""
    key: str = ""

    def get(self, path: str, **headers: str) -> Page:
        """Follow a link."""
        return self.send("GET", path, None, headers)

    def get_bytes(self, path: str) -> tuple[Page, bytes]:
        """Follow a link to a file: the answer without its body, and the bytes."""
        status, headers, data = self._sent("GET", path, None, {})
        return Page(status, headers, ""), data

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> Page:
        """Send a form of one of the pages, as a browser does; `Origin=""` leaves that header out."""
        body = urlencode({"form_key": self.key, **(fields or {})})
        return self.send(
            "POST", path, body, {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": FORM, **headers}
        )

    def send(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Page:
        """One request on a connection of its own."""
        status, found, data = self._sent(method, path, body, headers)
        return Page(status, found, data.decode())

    def _sent(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        sent = {"Cookie": self.cookie, **{name.replace("_", "-"): value for name, value in headers.items()}}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=_START_SECONDS)) as connection:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()


@dataclass(slots=True)
class Workbench:
    """A running workbench."""

    process: subprocess.Popen[bytes] | Forked
    state: Path
    log: Path

    def link(self) -> str:
        """The newest link in its terminal."""
        return [line.removeprefix(_LINK) for line in self.log.read_text().splitlines() if line.startswith(_LINK)][-1]

    @property
    def port(self) -> int:
        return urlsplit(self.link()).port or 0

    @property
    def token(self) -> str:
        return self.link().rpartition("token=")[2]

    def visitor(self) -> Visitor:
        """A browser that has opened the newest link."""
        visitor, link = Visitor(self.port), self.link()
        entered = visitor.post("/login", {"token": self.token})
        assert (entered.status, entered.headers["location"]) == (303, "/decisions"), entered.body
        until(lambda: self.link() != link)
        visitor.cookie = entered.headers["set-cookie"].partition(";")[0]
        visitor.key = visitor.get("/decisions").html.field("form_key")
        return visitor

    @contextmanager
    def full_disk(self, room: int) -> Iterator[None]:
        """It can write no file of more than `room` bytes meanwhile."""
        usual = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (room, usual[1]))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, usual)


@contextmanager
def workbench(
    folder: Path, cache: Path, *arguments: str | Path, env: Mapping[str, str] | None = None, name: str = "workbench"
) -> Iterator[Workbench]:
    """Start `engine workbench` on a free port for the state `folder/state`, and end it afterwards."""
    state, log = folder / "state", folder / f"{name}.log"
    line = ["workbench", "--state", str(state), *map(str, arguments)]
    with started(None, line, cache, environment(cache, env), log) as process:
        until(lambda: process.poll() is not None or _LINK in log.read_text(), _START_SECONDS)
        assert process.poll() is None, log.read_text()
        yield Workbench(process, state, log)
