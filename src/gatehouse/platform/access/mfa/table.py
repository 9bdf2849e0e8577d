"""Tables of second factors."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, LargeBinary, delete, func, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import Big, TenantRow


class TotpRow(TenantRow):
    __tablename__ = "mfa_totp"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    sealed_secret: Mapped[str]
    last_step: Mapped[Big]
    created_at: Mapped[datetime]
    confirmed_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class PasskeyRow(TenantRow):
    __tablename__ = "mfa_passkeys"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    credential_id: Mapped[bytes] = mapped_column(LargeBinary)
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str]
    transports: Mapped[list[str]] = mapped_column(JSONB)
    synced: Mapped[bool]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class RecoveryCodeRow(TenantRow):
    __tablename__ = "mfa_recovery_codes"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    user_id: Mapped[UUID]
    used_at: Mapped[datetime | None]


class ChallengeRow(TenantRow):
    __tablename__ = "mfa_challenges"

    challenge: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    user_id: Mapped[UUID]
    purpose: Mapped[str]
    expires_at: Mapped[datetime]


class AttemptsRow(TenantRow):
    __tablename__ = "mfa_attempts"

    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    span_seconds: Mapped[int] = mapped_column(primary_key=True)
    since: Mapped[datetime]
    wrong: Mapped[int]


async def totp(session: AsyncSession, user_id: UUID, *, confirmed: bool = True) -> TotpRow | None:
    """Return the enrolled authenticator app, or with `confirmed` false the one that waits for its first code."""
    state = TotpRow.confirmed_at.is_not(None) if confirmed else TotpRow.confirmed_at.is_(None)
    return (await session.scalars(select(TotpRow).where(TotpRow.user_id == user_id, state))).one_or_none()


async def drop_totp(session: AsyncSession, user_id: UUID, *, confirmed: bool) -> None:
    state = TotpRow.confirmed_at.is_not(None) if confirmed else TotpRow.confirmed_at.is_(None)
    await session.execute(delete(TotpRow).where(TotpRow.user_id == user_id, state))


async def count_passkeys(session: AsyncSession, user_id: UUID) -> int:
    query = select(func.count()).select_from(PasskeyRow).where(PasskeyRow.user_id == user_id)
    return (await session.execute(query)).scalar_one()


async def passkeys(session: AsyncSession, user_id: UUID) -> Sequence[PasskeyRow]:
    query = select(PasskeyRow).where(PasskeyRow.user_id == user_id).order_by(PasskeyRow.created_at, PasskeyRow.id)
    return (await session.scalars(query)).all()


async def recovery_codes_left(session: AsyncSession, user_id: UUID) -> int:
    query = select(func.count()).where(RecoveryCodeRow.user_id == user_id, RecoveryCodeRow.used_at.is_(None))
    return await session.scalar(query) or 0


async def use_recovery_code(session: AsyncSession, user_id: UUID, digest: bytes) -> bool:
    query = (
        update(RecoveryCodeRow)
        .where(RecoveryCodeRow.digest == digest, RecoveryCodeRow.user_id == user_id, RecoveryCodeRow.used_at.is_(None))
        .values(used_at=utc_now())
        .returning(RecoveryCodeRow.digest)
    )
    return (await session.execute(query)).first() is not None


async def drop_recovery_codes(session: AsyncSession, user_id: UUID) -> None:
    await session.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user_id))


async def take_challenge(session: AsyncSession, user_id: UUID, purpose: str, challenge: bytes) -> bool:
    """Use up the challenge; return whether it was open."""
    query = (
        delete(ChallengeRow)
        .where(
            ChallengeRow.challenge == challenge,
            ChallengeRow.user_id == user_id,
            ChallengeRow.purpose == purpose,
            ChallengeRow.expires_at > utc_now(),
        )
        .returning(ChallengeRow.challenge)
    )
    return (await session.execute(query)).first() is not None


async def drop_all_factors(session: AsyncSession, user_id: UUID) -> None:
    for row in (TotpRow, PasskeyRow, RecoveryCodeRow, ChallengeRow):
        await session.execute(delete(row).where(row.user_id == user_id))
