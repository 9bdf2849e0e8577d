"""Recovery codes: ten, each good once, for when the phone is lost.

They hold 80 bits of chance, so a plain digest is enough: nobody can try that many.
"""

import hashlib
import secrets
from typing import Final
from uuid import UUID

from gatehouse.platform.access.mfa import table
from gatehouse.platform.access.mfa.table import RecoveryCodeRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change

_HOW_MANY: Final = 10
#: Crockford's base32: no letters that are taken for digits.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_GROUPS: Final = 4
_READ_AS: Final = str.maketrans("ilo", "110")


async def make(change: Change, user: UserRow) -> list[str]:
    """Ten new codes; the earlier ones are void."""
    await table.drop_recovery_codes(change.session, user.id)
    codes = [_code() for _ in range(_HOW_MANY)]
    change.session.add_all(
        RecoveryCodeRow(digest=digest(user.id, code), tenant_id=user.tenant_id, user_id=user.id, used_at=None)
        for code in codes
    )
    change.record("mfa.recovery_codes_made", "user", user.id)
    return codes


def digest(user_id: UUID, code: str) -> bytes:
    """As typed: in upper case, without the hyphens, with an O for a zero."""
    plain = code.lower().replace("-", "").replace(" ", "").translate(_READ_AS)
    return hashlib.sha256(f"{user_id}:{plain}".encode()).digest()


def _code() -> str:
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(_GROUPS))
