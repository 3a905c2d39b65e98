"""Provisioned agents: the configuration that a person approved, until the agent is ended. Rows are evidence."""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.part import Part, columns, encodable, find, insert, storable, text, whole
from engine.state.rows import AgentRow

_ALL = f"SELECT {columns(AgentRow)} FROM agents"  # noqa: S608
_ACTIVE = f"{_ALL} WHERE ended_at IS NULL ORDER BY number"


class Agents(Part):
    """The part of the store for provisioned agents."""

    def add_agent(self, new: AgentRow, most: int) -> bool:
        """Store an active agent, unless `most` are active already; returns whether it was stored."""
        for name in ("id", "name", "role"):
            text(name, getattr(new, name))
        encodable("specification", new.specification)
        whole("created_at", new.created_at)
        whole("most", most)

        def operation(connection: Connection) -> bool:
            connection.lock("agents")
            if len(connection.execute(_ACTIVE).fetchall()) >= most:
                return False
            insert(connection, "agents", new)
            return True

        return self._database.write(operation)

    def active_agents(self) -> tuple[AgentRow, ...]:
        """The agents that were not ended, the oldest first."""
        return self._rows(AgentRow, _ACTIVE)

    def agents(self, limit: int) -> tuple[AgentRow, ...]:
        """The newest agents, including ended ones."""
        return self._rows(AgentRow, f"{_ALL} ORDER BY number DESC LIMIT ?", whole("limit", limit))

    def agent(self, id: str) -> AgentRow | None:
        """The agent with this id, active or ended."""
        return self._database.read(lambda connection: _find(connection, id))

    def end_agent(self, id: str, now: int) -> AgentRow | None:
        """End an agent and return its row, None if it is unknown. Idempotent."""
        whole("now", now)

        def operation(connection: Connection) -> AgentRow | None:
            connection.execute("UPDATE agents SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (now, storable(id)))
            return _find(connection, id)

        return self._database.write(operation)


def _find(connection: Connection, id_: str) -> AgentRow | None:
    return find(connection, AgentRow, f"{_ALL} WHERE id = ?", id_)
