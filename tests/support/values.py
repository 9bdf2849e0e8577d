import re


def shows(text: str, value: str) -> bool:
    """Whether it stands in the text by itself: ids, tokens and times have any digits somewhere."""
    return re.search(rf"(?<![\w.-]){re.escape(value)}(?![\w-])", text) is not None
