"""Reads the caller's tags and the end user for the usage record (`engine.records.attribution`)."""

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.records import attribution
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict

_TAGS = attribution.TAGS_HEADER.lower()


def note_tags(x: Identified, ports: Ports) -> Verdict | tuple[str, ...]:
    """Return the tags of the request. Refuses a header that is not a list of tags."""
    header = x.received.headers.get(_TAGS)
    if header is not None:
        try:
            return attribution.parse_tags(header)
        except InvalidField as error:
            return Refuse(error)
    return ALLOW


def note_end_user(x: CallRequest, ports: Ports) -> Verdict | str:
    """Return the end user that the body names. This stage runs after DLP, so that a value that DLP redacted is not
    recorded."""
    end_user = attribution.end_user(x.call.dialect, x.call.body)
    return ALLOW if end_user is None else end_user
