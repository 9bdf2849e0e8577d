"""Refuses a request when its record could not be written: the journal is full."""

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable


class NoJournalRoom(Unavailable):
    code = "journal_full"
    message = "Records cannot be written now, so requests are refused. An operator has to look."


def check(x: Identified, ports: Ports) -> Verdict:
    return Refuse(NoJournalRoom()) if ports.journal.full() else ALLOW
