"""Provisioned agents: the configuration that a person approved, until the agent is ended. Rows are evidence."""

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.checks import demand_storable, whole
from engine.state.part import Part, columns, insert, storable
from engine.state.rows import AgentRow

_ALL = f"SELECT {columns(AgentRow)} FROM agents"  # noqa: S608
_ONE = f"{_ALL} WHERE id = ?"
_ACTIVE = f"{_ALL} WHERE ended_at IS NULL ORDER BY number"


class Agents(Part):
    """The part of the store for provisioned agents."""

    def add_agent(self, new: AgentRow, most: int) -> bool:
        """Store an active agent, unless `most` are active already; returns whether it was stored."""
        demand_storable(new)
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
        return self._row(AgentRow, _ONE, storable(id))

    def end_agent(self, id: str, now: int) -> AgentRow | None:
        """End an agent and return its row, None if it is unknown. Idempotent."""
        end = "UPDATE agents SET ended_at = ? WHERE id = ? AND ended_at IS NULL"
        return self._end(AgentRow, _ONE, id, end, whole("now", now))
