"""Converts sampled requests of the journal into rows."""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from gatehouse.engine.records.outcome import Sampled

#: Inserts samples. Samples of users that no longer exist are skipped.
INSERT: Final = (
    "INSERT INTO dlp_samples (id, tenant_id, request_id, timestamp, user_id, requested_model, texts, characters,"
    " sealed_key, contents, answer_texts)"
    " SELECT more.* FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::timestamptz[], %s::uuid[], %s::text[],"
    " %s::integer[], %s::integer[], %s::text[], %s::text[], %s::integer[])"
    " AS more (id, tenant_id, request_id, timestamp, user_id, requested_model, texts, characters, sealed_key, contents,"
    " answer_texts)"
    " WHERE more.user_id IS NULL OR EXISTS (SELECT FROM users WHERE users.id = more.user_id)"
    " ON CONFLICT DO NOTHING"
)


class StoredSample(NamedTuple):
    """A row of `dlp_samples`."""

    id: str
    tenant_id: str
    request_id: str
    timestamp: datetime
    user_id: str | None
    requested_model: str | None
    texts: int
    characters: int
    sealed_key: str
    contents: str
    answer_texts: int | None


def sample_row(entry: Sampled[str]) -> StoredSample:
    """Convert a journal entry into a row of `dlp_samples`."""
    return StoredSample(
        id=entry.id,
        tenant_id=entry.tenant_id,
        request_id=entry.request_id,
        timestamp=datetime.fromtimestamp(entry.timestamp, UTC),
        user_id=entry.user_id,
        requested_model=entry.requested_model,
        texts=entry.texts,
        characters=entry.characters,
        sealed_key=entry.sealed_key,
        contents=entry.contents,
        answer_texts=entry.answer_texts,
    )
