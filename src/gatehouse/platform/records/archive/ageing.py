"""Moves archived files from warm to cold, and deletes expired files, by the active policy (docs/retention.md)."""

from datetime import date, timedelta
from uuid import UUID

import msgspec

from gatehouse.foundation.ids import new_id
from gatehouse.platform.records.archive.storage import manifest
from gatehouse.platform.records.archive.storage.checkpoints import opened, seal
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.writer import ArchiveWriter
from gatehouse.platform.records.hot import HotRetention


def age(writer: ArchiveWriter, tenant_id: UUID, policy: HotRetention) -> None:
    """Move and delete those files of one organization that are due. Raises `UnderLegalHold`."""
    today = writer.now.date()
    for file in manifest.list_files(writer.connection, tenant_id):
        writer.check_stop()
        if not file.is_only_in_archive:
            continue
        last_warm_day, until = ends(file, policy)
        if until < today:
            _delete(writer, file)
        elif file.tier == "warm" and last_warm_day < today:
            _move(writer, file, until)


def ends(file: ArchiveFile, policy: HotRetention) -> tuple[date, date]:
    """Return the last day on which the file is warm, and the last day on which it is kept."""
    warm = file.last_at.date() + timedelta(days=policy.hot_retention_days + policy.warm_retention_days)
    try:
        return warm, warm.replace(year=warm.year + policy.cold_retention_years)
    except ValueError:  # 29 February
        return warm, date(warm.year + policy.cold_retention_years, 3, 1)


def _move(writer: ArchiveWriter, file: ArchiveFile, until: date) -> None:
    file_id = new_id()
    path = manifest.path("cold", file.records, file.tenant_id, until, file_id)
    manifest.begin(writer.connection, file_id, file.tenant_id, file.records, tier="cold", path=path)
    checkpoint = opened(writer.sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    writer.storage.copy(file.path, path)
    writer.check(path, file.bytes, checkpoint.sha256)
    sealed = seal(writer.sealer, file.tenant_id, file_id, checkpoint)
    writer.keep(file._replace(id=file_id, tier="cold", path=path, sealed_checkpoint=sealed), (file,))


def _delete(writer: ArchiveWriter, file: ArchiveFile) -> None:
    checkpoint = opened(writer.sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    sealed = seal(writer.sealer, file.tenant_id, file.id, msgspec.structs.replace(checkpoint, gone=True))
    with writer.connection.transaction():
        manifest.ensure_no_legal_hold(writer.connection, file.tenant_id)
        writer.storage.remove(file.path)
        manifest.note_expired(writer.connection, file.id, sealed)
