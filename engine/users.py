"""Who somebody is to the operating system."""

from __future__ import annotations

import pwd


def user_of(uid: int) -> str:
    """The principal of a user of this machine, from the user database and never from the environment."""
    try:
        return f"user:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user:{uid}"
