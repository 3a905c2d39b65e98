"""Who may use the pages: a browser that has spent a link, which is only shown where the workbench was started."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from threading import Lock

from engine.api.messages import Head
from engine.workbench.drafts import Draft
from engine.workbench.pages import PageError

_MOST_SESSIONS, _MOST_DRAFTS = 8, 8
"""Browsers that are logged in, and previews that one of them keeps; the oldest is dropped."""


class AccessError(PageError):
    """The request does not come from a page of a browser that is logged in."""

    code = "engine.workbench_access"
    status = 403


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(slots=True)
class Session:
    """One browser. Its forms bring `form_key` back; `drafts` are edits that it has previewed."""

    form_key: str = field(default_factory=_secret)
    drafts: dict[str, Draft] = field(default_factory=dict)

    def check(self, presented: str) -> None:
        """Refuse a form that no page of this session has sent. Raises AccessError."""
        if not hmac.compare_digest(presented.encode("utf-8", "replace"), self.form_key.encode()):
            raise AccessError("the form is not one of this session", remedy="reload the page and send the form again")

    def keep(self, draft: Draft) -> None:
        """Keep a draft, and drop the oldest of too many."""
        self.drafts[draft.key] = draft
        while len(self.drafts) > _MOST_DRAFTS:
            del self.drafts[next(iter(self.drafts))]


class Access:
    """Links and sessions. A link works once, and only a login makes a session: what a browser brings is never one.

    Cookies ignore ports, so the name of ours has the port.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._token = _secret()
        self._sessions: dict[str, Session] = {}
        self._lock = Lock()

    @property
    def link(self) -> str:
        """The link that works next."""
        return f"http://127.0.0.1:{self._port}/login?token={self._token}"

    def log_in(self, token: str) -> tuple[bytes, bytes]:
        """Spend the link: the header that sets the cookie of a new session. Raises AccessError."""
        with self._lock:
            if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
                raise AccessError(
                    "this link was used already, or is not one of this workbench",
                    remedy="use the newest link in the terminal of `engine workbench`; "
                    "if you did not use the earlier one, stop the workbench: another person did",
                )
            self._token, key = _secret(), _secret()
            self._sessions[_digest(key)] = Session()
            while len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return self._cookie(key)

    def log_out(self, session: Session) -> tuple[bytes, bytes]:
        """End a session: the header that removes its cookie."""
        with self._lock:
            self._sessions = {key: one for key, one in self._sessions.items() if one is not session}
        return self._cookie("", "; Max-Age=0")

    def session(self, head: Head) -> Session | None:
        """The session of a request; None without one, and where two cookies have the name."""
        text = head.headers.get(b"cookie", b"").decode("latin-1")
        if b"cookie" in head.repeated or text.count(f"{self._name}=") != 1:
            return None
        try:
            found = SimpleCookie(text).get(self._name)
        except CookieError:
            return None
        return None if found is None else self._sessions.get(_digest(found.value))

    @property
    def _name(self) -> str:
        return f"workbench-{self._port}"

    def _cookie(self, value: str, more: str = "") -> tuple[bytes, bytes]:
        return b"set-cookie", f"{self._name}={value}; HttpOnly; SameSite=Strict; Path=/{more}".encode()


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()
