"""Passwords that attackers try first: those that leaked most often, and what is known of the account (NIST SP 800-63B,
3.1.1.2). The list is the one of the package `zxcvbn`."""

import importlib.util
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

_SERVICE: Final = "gatehouse"


def is_common(password: str, about: str | None = None) -> bool:
    """Whether a password is on the list, or is the service's name or a part of the address `about`. Case does not
    matter, nor do digits and signs at the end: people add them where a rule asks for some."""
    spelled = unicodedata.normalize("NFKC", password).casefold()
    bare = spelled.rstrip("0123456789!?.,-_*#$ ")
    known = {_SERVICE, *_parts(about)}
    return spelled in _listed() or spelled in known or bare in known


def _parts(address: str | None) -> set[str]:
    """The address, what stands before its @ sign, and its domain without and with the ending."""
    if not address:
        return set()
    local, _, domain = address.casefold().rpartition("@")
    return {address.casefold(), local, domain, domain.partition(".")[0]} - {""}


@cache
def _listed() -> frozenset[str]:
    """Read from the package's file alone: importing the package would keep 15 MiB of other lists in memory."""
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
