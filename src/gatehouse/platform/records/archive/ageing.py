"""What becomes of archived files: warm, then cold, then gone (decisions 5, Retention). By the policy in force."""

from datetime import date, timedelta
from uuid import UUID

import msgspec

from gatehouse.foundation.ids import new_id
from gatehouse.platform.records.archive import manifest
from gatehouse.platform.records.archive.checkpoints import opened, seal
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.workshop import Workshop
from gatehouse.platform.records.hot import RetentionPolicy


def age(shop: Workshop, tenant_id: UUID, policy: RetentionPolicy) -> None:
    """Moves and deletes what is due of one organization's."""
    today = shop.now.date()
    for file in manifest.kept(shop.connection, tenant_id):
        shop.go_on()
        if file.removed_at is None:
            continue
        last, until = ends(file, policy)
        if until < today:
            _delete(shop, file)
        elif file.tier == "warm" and last < today:
            _move(shop, file, until)


def ends(file: File, policy: RetentionPolicy) -> tuple[date, date]:
    """The last days on which the file is warm, and on which it is kept at all."""
    warm = file.last_at.date() + timedelta(days=policy.hot_retention_days + policy.warm_retention_days)
    try:
        return warm, warm.replace(year=warm.year + policy.cold_retention_years)
    except ValueError:  # 29 February
        return warm, date(warm.year + policy.cold_retention_years, 3, 1)


def _move(shop: Workshop, file: File, until: date) -> None:
    file_id = new_id()
    path = manifest.path("cold", file.records, file.tenant_id, until, file_id)
    manifest.begin(shop.connection, file_id, file.tenant_id, file.records, tier="cold", path=path)
    checkpoint = opened(shop.sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    shop.place.copy(file.path, path)
    shop.check(path, file.bytes, checkpoint.sha256)
    sealed = seal(shop.sealer, file.tenant_id, file_id, checkpoint)
    shop.keep(file._replace(id=file_id, tier="cold", path=path, sealed_checkpoint=sealed), (file,))


def _delete(shop: Workshop, file: File) -> None:
    held = opened(shop.sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    sealed = seal(shop.sealer, file.tenant_id, file.id, msgspec.structs.replace(held, gone=True))
    with shop.connection.transaction():
        manifest.not_held(shop.connection, file.tenant_id)
        shop.place.remove(file.path)
        manifest.note_gone(shop.connection, file.id, sealed)
