"""Law 5: without a record nothing is allowed and nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.cases.run import Runner
from engine.model import Outcome, Permit, Result
from engine.settings import Settings
from tests.laws.asking import ONE_EACH, enforced


# covers: H11.1
def test_5_without_a_record_nothing_is_allowed_and_nothing_runs(shared_settings: Settings, tmp_path: Path) -> None:
    ran: list[str] = []

    def executor(permit: Permit, _: Any) -> Result:
        ran.append(permit.point)
        return Result("done", {})

    with Runner(shared_settings, tmp_path / "good") as good:
        for file in ONE_EACH:
            got = enforced(good.at(file), file, good.request(file), executor)
            assert got.decision.outcome is Outcome.ALLOW, file.path
    assert ran == [file.case.point for file in ONE_EACH]  # the control: with a record it does run
    ran.clear()
    (tmp_path / "bad" / "state-0").mkdir(parents=True)
    (tmp_path / "bad" / "state-0" / "records").write_text("a file where the folder should be")
    with Runner(shared_settings, tmp_path / "bad") as bad:
        for file in ONE_EACH:
            got = enforced(bad.at(file), file, bad.request(file), executor)
            assert got.decision.outcome is Outcome.DENY, file.path
            assert got.decision.findings[0].code.startswith("engine.record_"), file.path
            assert got.exit == 4
    assert not ran
