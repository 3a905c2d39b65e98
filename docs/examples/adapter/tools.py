"""Tools of an adapter: one function for each, by the name of its row in policy/tools.yaml."""

from __future__ import annotations

from admission_adapters.tools.gate import record_side_effect

_CONTACTS = ("Ada", "Alan", "Grace")


def contacts_list(search: str) -> list[str]:
    """The contacts whose names begin like that."""
    record_side_effect("read", id="contacts")
    return [name for name in _CONTACTS if name.startswith(search)]
