"""Rejects values that are not secrets: placeholders, references to variables, words, and code."""

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Final

import re2

from gatehouse.detection.pattern import Validator
from gatehouse.detection.regex.byte_search import ANYWHERE, search_of


def finder(regex: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.never_capture = True
    search = search_of(re2.compile(regex, options))

    def occurs(text: str) -> bool:
        data = text.encode("utf-8", "replace")
        return bool(search(ANYWHERE, data, 0, len(data))[0][0] >= 0)

    return occurs


_filler: Final = finder(r"(?i)x{5,}|\*{3,}|#{4,}|\.{3,}|_{5,}|-{5,}|(?:123){4,}|abcdefghi|0123456789|…")
_reference: Final = finder(
    r"""^(?:\$[({A-Za-z_]|%[+#\-]?[\w({]|\{\{|#\{|@\{|<[^>]*>?$|\[[\w -]*\]$|&[a-z]+;)"""
    r"""|^(?:env|process|os|secrets)\.|^(?:vault|ref):"""
    r"""|\{\{\s*[\w.$|() ]+\}\}|<%"""
)
_example_words: Final = finder(
    r"(?i)example|placeholder|change[_-]?me|chang[_-]?it|redacted|dummy|fake|sample"
    r"|(?:^|[^a-z0-9])(?:your|my|the|some|an?|insert|enter|put|replace|todo|tbd)[_ -]"
    r"|(?:key|token|secret|password|goes|value)[_ -]?here|lorem|foobar|_?(?:api_?key|token|secret|password)$"
)
_word: Final = finder(r"^[A-Za-z]+(?:[_.\-/ :][A-Za-z]+)*[.!?;,:]*$")
_expression: Final = finder(
    r"^[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_]\w*)*(?:[(\[].*)?[;,)]*$|^[\w.$]+\(|^(?:function|new|lambda|return|await)\b|^[(\[{].*"
)
_address: Final = finder(r"(?i)^(?:[a-z][a-z0-9+.-]{1,12}://|\.{0,2}/[\w.]+/|[a-z]:\\|www\.|data:)")
_uuid: Final = finder(r"(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_name_in_code: Final = finder(r"^[\w.]+\(.*\)$|^[A-Z][A-Z0-9]*_[A-Z0-9_]+$|^[a-z]+(?:_[a-z]+)+\d?$")
_letters_of_code: Final = finder(r"[a-z]{3,}[A-Z][a-z]{3,}|[a-z]{4,}[_\-.][a-z]{4,}")

_hash: Final = finder(r"^(?:sha(?:1|256|384|512)|md5|h1)[\-:]")

_BETWEEN: Final = re.compile(r"[^A-Za-z0-9]+")
#: A change from a lower-case letter to a capital, or between a letter and a digit.
_CHANGE: Final = re.compile(r"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])")
#: Minimum length of a text for which such changes show that it is random.
_MIN_MIXED_CHARACTERS: Final = 16


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values()) if length else 0.0


def placeholder(value: str) -> bool:
    """Return whether the value is a placeholder: `xxxxxxxx`, `${TOKEN}`, `<your key>`, `changeme`, `YOUR_KEY_HERE`."""
    return _filler(value) or _reference(value) or _example_words(value)


def token(bits: float) -> Validator:
    """Return a check for tokens in a published form. It rejects filler characters, and text with less than `bits` bits
    of entropy per character."""

    def verdict(text: str) -> bool | None:
        return False if _filler(text) or entropy(text) < bits else None

    return verdict


def assigned_key(bits: float) -> Validator:
    """Return a check for values of names such as `api_key`. It accepts random letters and digits, and rejects words,
    versions and paths."""

    def verdict(text: str) -> bool | None:
        if placeholder(text) or _address(text) or entropy(text) < bits:
            return False
        if _is_mixed_and_long(text):
            return None
        return None if _has_digit(text) and (_uuid(text) or not _reads_like_code(text)) else False

    return verdict


def no_number(text: str) -> bool | None:
    """Reject a text that consists only of digits. After an ambiguous name it is a count or an id:
    `last_token=443288196862`."""
    return False if text.isdigit() else None


def no_slug(text: str) -> bool | None:
    """Reject words with short numbers, such as `us-east-1` and `order_2024`. After a name that may be the name of a
    column, they are names."""
    return False if _slug(text) else None


_slug: Final = finder(r"^[A-Za-z]+(?:[_\-.:/ ][A-Za-z]*\d{0,4})*$")


def unnamed_key(text: str) -> bool | None:
    """Check a value in quotes whose name does not show that it is a secret. Also rejects the hashes of lock files."""
    return False if _hash(text) else _unnamed(text)


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_mixed_and_long(text: str) -> bool:
    """Return whether the text is long and changes between capitals, lower-case letters and digits more often than a
    name does. The words of a name mostly have more than four letters."""
    return len(text) >= _MIN_MIXED_CHARACTERS and len(_CHANGE.findall(text)) * 4 >= len(text)


def _reads_like_code(text: str) -> bool:
    """Return whether the text consists mostly of words and numbers, like `fooBar2`, `rc0.15.0_20231217-SNAPSHOT`,
    `X25519.KeyPair` and `a/20231217093000-1.csv`."""
    if _letters_of_code(text) and sum(map(str.isdigit, text)) * 6 < len(text):
        return True
    pieces = [piece for piece in _BETWEEN.split(text) if piece]
    return len(pieces) > 2 and max((len(piece) for piece in pieces if not piece.isdigit()), default=0) < 12


_unnamed: Final = assigned_key(4.4)


def password(text: str) -> bool | None:
    """Check a value in quotes after a name such as `password`. Rejects a value that consists only of words, because it
    is a label or the name of a field."""
    if len(text) < 4 or not any(character.isalnum() for character in text):
        return False
    if placeholder(text) or _address(text) or text.isdigit() or " " in text:
        return False
    if _word(text) and not _is_mixed_and_long(text):
        return False
    return False if _name_in_code(text) else None


def bare_password(text: str) -> bool | None:
    """Check a value without quotes after a name such as `password`. Also rejects code."""
    stripped = text.rstrip("\"'`,;=")
    looks_random = _numbered(stripped) or _letters_and_digits(stripped) or _is_mixed_and_long(stripped)
    if _expression(stripped) and not looks_random:
        return False
    return password(stripped)


def configured(text: str) -> bool | None:
    """Check a value in a place that can only contain a value, such as a configuration file. Accepts words too."""
    if len(text) < 3 or not any(character.isalnum() for character in text) or _address(text):
        return False
    if _no_values(text) or _filler(text) or _reference(text):
        return False
    return False if text.isdigit() and len(text) < 6 else None


#: A word with a number after it. Many passwords have this form.
_numbered: Final = finder(r"^[A-Za-z]{3,}[_$]?\d{2,}\$?$")

_no_values: Final = finder(
    r"(?i)^(?:true|false|null|none|nil|undefined|yes|no|on|off|password|secret|token|string|text|required|optional|empty"
    r"|changeme|example|default|prompt|hidden|disabled|enabled)$"
)


def _letters_and_digits(text: str) -> bool:
    return text.isalnum() and not text.isalpha() and not text.isdigit()


_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def crc32_base62(text: str) -> bool | None:
    """Confirm a token of GitHub or npm. Its last six characters are the CRC-32 of the thirty characters before them, in
    base 62.

    A wrong checksum does not reject a token, because older tokens and tokens of compatible servers have no checksum."""
    head, _, body = text.partition("_")
    if not head or len(body) != 36:
        return None
    remainder, check = zlib.crc32(body[:30].encode()), ""
    for _ in range(6):
        remainder, digit = divmod(remainder, 62)
        check = _BASE62[digit] + check
    return True if check == body[30:] else None


def jwt(text: str) -> bool:
    """Return whether the header is base64url of a JSON object that identifies an algorithm or type (RFC 7515)."""
    try:
        header = json.loads(_unpadded(text.split(".", 1)[0]))
    except ValueError:
        return False
    return isinstance(header, dict) and ("alg" in header or "typ" in header)


def _unpadded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def user_and_password(text: str) -> bool | None:
    """Check that the text is base64 of `user:password`, as in HTTP's Basic authentication and Docker's `auth`."""
    try:
        user, colon, word = _unpadded(text.rstrip("=")).decode().partition(":")
    except ValueError:
        return False
    return None if user and colon and word and (user + word).isprintable() else False


def private_key_body(text: str) -> bool | None:
    """Check that there is data between the first and last line of a private key, and not just a short word or filler
    characters."""
    body = "".join(text.split("-----")[2:3]).strip()
    return None if len(body) >= 12 and not _filler(body) else False
