import re


def shows(text: str, value: str) -> bool:
    """Return whether the value is a separate word of the text. Ids, tokens and times may contain its digits by
    chance."""
    return re.search(rf"(?<![\w.-]){re.escape(value)}(?![\w-])", text) is not None
