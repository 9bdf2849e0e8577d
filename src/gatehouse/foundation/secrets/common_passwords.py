"""Rejects passwords that attackers try first: common leaked passwords and the account's own names (NIST SP 800-63B,
3.1.1.2). The list of common passwords is that of the package `zxcvbn`."""

import importlib.util
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

_SERVICE: Final = "gatehouse"


def is_common(password: str, about: str | None = None) -> bool:
    """Returns whether a password is on the list, is the name of the service, or is a part of the e-mail address
    `about`. Case is ignored. If the password is a name, digits and signs at its end are ignored, too, because people
    add them to satisfy password rules."""
    folded = unicodedata.normalize("NFKC", password).casefold()
    stem = folded.rstrip("0123456789!?.,-_*#$ ")
    names = {_SERVICE, *_parts(about)}
    return folded in _common_passwords() or folded in names or stem in names


def _parts(address: str | None) -> set[str]:
    """Returns the address, its local part, its domain, and the first label of its domain."""
    if not address:
        return set()
    local, _, domain = address.casefold().rpartition("@")
    return {address.casefold(), local, domain, domain.partition(".")[0]} - {""}


@cache
def _common_passwords() -> frozenset[str]:
    """Returns the list of common passwords. Reads only one file of the package, because importing the package keeps 15
    MiB of other lists in memory."""
    package = importlib.util.find_spec("zxcvbn")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).with_name("frequency_lists.py")
    spec = importlib.util.spec_from_file_location("_frequency_lists", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return frozenset(module.FREQUENCY_LISTS["passwords"])
