"""From a URL to a side effect and back, in one record: fetched over TLS, checked, built, broken and restored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from engine.engine import Engine
from engine.fetching import FetchOrder
from engine.model import Outcome
from engine.settings import Settings
from tests.environments.bundles import AGENT, CONTACTS, OPTIONS, proven
from tests.first_hour.pages import blocks
from tests.sources.https import HOST, Authority, complete, response, serving
from tests.sources.world import REACHABLE

PEOPLE = [{"id": 1, "name": "Ada", "city": "London"}, {"id": 2, "name": "Ben", "city": "Zurich"}]


# covers: A07, A08.2, A40.1-2, A41.1, A42
def test_the_record_links_the_url_to_the_side_effect(settings: Settings, tmp_path: Path) -> None:
    authority, into = Authority(tmp_path), tmp_path / "contacts"
    with serving(authority.context()) as server:
        server.answers(response(json.dumps(PEOPLE).encode()))
        values = (
            f"networks.ports=[443, {server.port}]",
            REACHABLE,
        )
        with Engine(replace(settings, ca_file=authority.path), values=values) as engine:
            assert engine.services is not None
            context = replace(engine.services.gather_context, addresses=lambda _: ("127.0.0.1",))
            engine.services = replace(engine.services, gather_context=context)
            url = server.url("/people.json?key=canary-query")
            assert engine.fetch(FetchOrder((url,), into, "CC-BY-4.0", (HOST,)), AGENT).folder == into
            assert engine.check("source", {"path": str(into), "digest": None}, AGENT).decision.outcome is Outcome.DENY
            (lines,) = blocks("docs/from-a-url.md", "yaml")
            complete(into, lines)
            checked = engine.check("source", {"path": str(into), "digest": None}, AGENT)
            assert checked.decision.outcome is Outcome.ALLOW, checked.decision.findings
            assert engine.build(into, tmp_path / "built", context=AGENT).result is not None
            folder = tmp_path / "built" / CONTACTS
            with engine.open_environment(folder, AGENT, **OPTIONS) as session:

                def call(operation: str, **arguments: str) -> str:
                    result = session.call({"name": f"{CONTACTS}_{operation}", "arguments": arguments})
                    return result.content if result.status == "ok" else str(result.code)

                assert json.loads(call("search", search="zurich"))["total"] == 1
                assert json.loads(call("delete", id="2")) == {"deleted": "2"}
                assert call("get", id="2") == "contact_missing"
                assert session.restore(session.trajectory[0]["name"]).result is not None
                assert json.loads(call("get", id="2"))["name"] == "Ben"
                assert session.verify() == []
    proven(settings.state, folder)
    written = b"".join(path.read_bytes() for path in settings.state.rglob("*.jsonl"))
    assert not [word for word in (b"canary-query", b"people.json", b"Zurich", b"Ada") if word in written]
