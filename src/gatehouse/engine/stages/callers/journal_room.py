"""Refuses a request if the journal is full, because the request could not be recorded."""

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable


class NoJournalRoom(Unavailable):
    code = "journal_full"
    message = "The journal is full, so requests cannot be recorded and are refused. Contact the gateway's operator."


def check(x: Identified, ports: Ports) -> Verdict:
    return Refuse(NoJournalRoom()) if ports.journal.full() else ALLOW
