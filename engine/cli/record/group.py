"""`engine record`, with the commands that build a policy too."""

from engine.cli.record.commands import app
from engine.cli.record.replay import replay_record
from engine.cli.record.shadow import report_shadow

__all__ = ["app"]

app.command("replay")(replay_record)
app.command("shadow")(report_shadow)
