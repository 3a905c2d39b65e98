"""How values name hosts: one form in all documents, for names, domains and ranges of addresses.

    docs.example.com              the host, by https on port 443
    *.example.com                 every host below the domain, at any depth
    docs.example.com:8443         another port; `:*` is any port
    http://127.0.0.1:8080         another scheme
    10.0.0.0/8   fd00::/8         every address of a range, by every scheme and port; one address is a range too
    https://api.example.com/v1/   only URLs whose path is below this folder

Written without a scheme, a rule that refuses or asks covers every scheme and port, and a domain also its own name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated

from pydantic import AfterValidator

from engine.facts.net.urls import canonical_host, reached

_FORM = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<wild>\*\.)?(?P<host>\[[0-9a-f:]+\]|[a-z0-9.-]+)"
    r"(?::(?P<port>\*|[1-9][0-9]{0,4}))?(?P<path>/[^?#]*)?"
)
_PORT = re.compile(r":[0-9]+\Z")
_RANGE = re.compile(r"[0-9a-f.:]+(?:/[0-9]{1,3})?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_LAST_PORT = 65_535

PROBLEM = (
    "write a host in lower case, other letters as `xn--…`, perhaps with `*.` before its domain, a port unless it is "
    "the default, and the folder of a path that ends with `/`; or a range of addresses: docs.example.com, "
    "*.example.com, https://api.example.com:8443, https://api.example.com/v1/, 10.0.0.0/8"
)


@dataclass(frozen=True, slots=True)
class HostForm:
    """A host as a value names it. `name` is exact, `*.domain`, or a range of addresses; `port` None is the default."""

    scheme: str | None
    name: str
    port: str | None
    path: str
    range: IPv4Network | IPv6Network | None = None

    @property
    def plain(self) -> bool:
        """Whether it is a name or domain and nothing else."""
        return self.range is None and self.scheme is None and self.port is None and not self.path

    @property
    def allows(self) -> str:
        """What an allow rule covers: `scheme://name`, with a port unless it is the default, and a path."""
        if self.range is not None:
            return self.refuses
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme or 'https'}://{self.name}{port}{self.path}"

    @property
    def refuses(self) -> str:
        """What a rule covers that refuses or asks: the same, or every scheme and port."""
        if self.scheme is not None:
            return self.allows
        return f"*://{self.name}:{self.port or '*'}{self.path}"

    def names(self, origin: str) -> bool:
        """Whether it names the host of a canonical origin, whatever the path; only for reports, OPA decides."""
        scheme, _, authority = origin.partition("://")
        host, _, port = authority.rpartition(":") if _PORT.search(authority) else (authority, "", "")
        if self.range is not None:
            try:
                return ip_address(host.strip("[]")) in self.range
            except ValueError:
                return False
        named = host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name
        return named and scheme == (self.scheme or "https") and self.port in {"*", port or None}


def host_form(text: str) -> HostForm | None:
    """The form of a text; None if it is in none. Never raises."""
    if (network := _network(text)) is not None:
        return HostForm(None, str(network), None, "", network)
    if (match := _FORM.fullmatch(text)) is None:
        return None
    scheme, wild, host, port, path = match.group("scheme", "wild", "host", "port", "path")
    usable = canonical_host(f"x.{host}") if wild else reached(f"{scheme or 'https'}://{host}/").canonical
    if not usable or not _is_path(path) or not _is_port(port, scheme):
        return None
    return HostForm(scheme, f"{wild or ''}{host}", port, path or "")


def is_host_or_domain(text: str) -> bool:
    """Whether it is a name or a domain, and neither a range nor with scheme, port or path."""
    form = host_form(text)
    return form is not None and form.plain and canonical_host(form.name.removeprefix("*."))


def _host_or_domain(text: str) -> str:
    if not is_host_or_domain(text):
        raise ValueError(
            "it should be a name in lower case with a dot, without scheme, port and path, and no address:"
            " docs.example.com, or *.example.com for all hosts below it"
        )
    return text


HostOrDomain = Annotated[str, AfterValidator(_host_or_domain)]
"""A host or domain where scheme and port are stated beside it."""


def _network(text: str) -> IPv4Network | IPv6Network | None:
    """A range of addresses in its only spelling; an address without a port is one too."""
    if _RANGE.fullmatch(text) is None:
        return None
    try:
        found = ip_network(text)
    except ValueError:
        return None
    return found if text in {str(found), str(found.network_address)} else None


def _is_path(path: str | None) -> bool:
    return path is None or (path != "/" and path.endswith("/") and reached(f"https://a.example{path}").path == path)


def _is_port(port: str | None, scheme: str | None) -> bool:
    if port is None or port == "*":
        return True
    return int(port) <= _LAST_PORT and port != _DEFAULT_PORTS[scheme or "https"]
