"""Checks whether a regex occurs in a value."""

from collections.abc import Callable

import re2

from gatehouse.detection.regex.byte_search import ANYWHERE, search_of


def finder(regex: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.never_capture = True
    search = search_of(re2.compile(regex, options))

    def occurs(text: str) -> bool:
        data = text.encode("utf-8", "replace")
        return bool(search(ANYWHERE, data, 0, len(data))[0][0] >= 0)

    return occurs
