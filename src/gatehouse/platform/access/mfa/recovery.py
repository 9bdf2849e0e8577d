"""Recovery codes: ten codes, each valid once, for users who have lost their device.

A code has 80 bits of entropy, so a plain digest is sufficient against guessing.
"""

import hashlib
import secrets
from typing import Final
from uuid import UUID

from gatehouse.platform.access.mfa import table
from gatehouse.platform.access.mfa.table import RecoveryCodeRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change

_CODE_COUNT: Final = 10
#: Crockford's base32, without letters that look like digits.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_GROUPS_PER_CODE: Final = 4
_LOOKALIKE_LETTERS: Final = str.maketrans("ilo", "110")


async def replace_codes(change: Change, user: UserRow) -> list[str]:
    """Replace the user's codes and return the ten new ones."""
    await table.drop_recovery_codes(change.session, user.id)
    codes = [_new_code() for _ in range(_CODE_COUNT)]
    change.session.add_all(
        RecoveryCodeRow(digest=digest(user.id, code), tenant_id=user.tenant_id, user_id=user.id, used_at=None)
        for code in codes
    )
    change.record("mfa.recovery_codes_made", "user", user.id)
    return codes


def digest(user_id: UUID, code: str) -> bytes:
    """Return the digest of a code as a user types it: in upper or lower case, with or without hyphens, with an O for a
    zero."""
    normalized = code.lower().replace("-", "").replace(" ", "").translate(_LOOKALIKE_LETTERS)
    return hashlib.sha256(f"{user_id}:{normalized}".encode()).digest()


def _new_code() -> str:
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(_GROUPS_PER_CODE))
