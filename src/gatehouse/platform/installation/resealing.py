"""The columns that are sealed under the master key, and their re-sealing under a new key (`gatehouse keys
rotate-master`).

A family that seals a column adds it to `SEALED`. A test compares this list with the schema.
"""

from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration import resealing
from gatehouse.administration.resealing import ResealReport, SealedColumn
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.users.mailing import token_context as one_time_token_context
from gatehouse.platform.batches.storage.contents import key_context as batch_key_context
from gatehouse.platform.changes.change import Change
from gatehouse.platform.conversations.conversations.contents import key_context
from gatehouse.platform.conversations.share_links.service import token_context
from gatehouse.platform.governance.dlp_samples.contents import key_context as sample_key_context
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.mcp.connections.table import tokens_context, verifier_context
from gatehouse.platform.operations.siem.sending import secret_context as siem_context
from gatehouse.platform.operations.webhooks.sending import secret_context
from gatehouse.platform.records.archive.storage.checkpoints import context as checkpoint_context
from gatehouse.policy.catalog import credential_key
from gatehouse.policy.mcp import mcp_client_key, mcp_environment_key, mcp_secret_key

SEALED: Final = (
    SealedColumn("signing_keys", ("kid",), "sealed_private", lambda kid: f"signing_key:{kid}".encode()),
    SealedColumn(
        "mfa_totp", ("tenant_id", "id"), "sealed_secret", lambda tenant, row: f"mfa_totp:{tenant}:{row}".encode()
    ),
    SealedColumn("saml_keys", ("id",), "sealed_private", lambda key_id: f"saml_key:{key_id}".encode()),
    SealedColumn("providers", ("tenant_id", "id"), "sealed_credentials", sealing_context),
    SealedColumn(
        "provider_credentials",
        ("tenant_id", "provider_id", "label"),
        "sealed_secret",
        lambda tenant, provider, label: sealing_context(tenant, credential_key(provider, label)),
    ),
    SealedColumn(
        "mcp_servers",
        ("tenant_id", "id"),
        "sealed_header",
        lambda tenant, server: sealing_context(tenant, mcp_secret_key(server)),
    ),
    SealedColumn(
        "mcp_servers",
        ("tenant_id", "id"),
        "sealed_client_secret",
        lambda tenant, server: sealing_context(tenant, mcp_client_key(server)),
    ),
    SealedColumn(
        "mcp_servers",
        ("tenant_id", "id"),
        "sealed_environment",
        lambda tenant, server: sealing_context(tenant, mcp_environment_key(server)),
    ),
    SealedColumn("mcp_connections", ("tenant_id", "server_id", "user_id"), "sealed_tokens", tokens_context),
    # Several rows may have the same context, so the key has the id too.
    SealedColumn(
        "mcp_revocations",
        ("tenant_id", "server_id", "user_id", "id"),
        "sealed_tokens",
        lambda tenant, server, user, _: tokens_context(tenant, server, user),
    ),
    SealedColumn(
        "mcp_revocations",
        ("tenant_id", "server_id", "id"),
        "sealed_client_secret",
        lambda tenant, server, _: sealing_context(tenant, mcp_client_key(server)),
    ),
    SealedColumn("mcp_consents", ("tenant_id", "server_id", "user_id"), "sealed_verifier", verifier_context),
    # Each conversation, batch, file and sample has its own key, which seals its texts.
    SealedColumn("conversations", ("id",), "sealed_key", key_context),
    SealedColumn("batches", ("id",), "sealed_key", batch_key_context),
    SealedColumn("files", ("id",), "sealed_key", batch_key_context),
    SealedColumn("dlp_samples", ("tenant_id", "id"), "sealed_key", sample_key_context),
    SealedColumn("share_links", ("id",), "sealed_token", token_context),
    SealedColumn("webhooks", ("tenant_id", "id"), "sealed_secret", secret_context),
    SealedColumn("one_time_tokens", ("tenant_id", "id"), "sealed_token", one_time_token_context),
    SealedColumn("siem_targets", ("tenant_id",), "sealed_secret", siem_context),
    SealedColumn("archive_files", ("tenant_id", "id"), "sealed_checkpoint", checkpoint_context),
)


async def reseal(session: AsyncSession, sealer: Sealer) -> ResealReport:
    """Re-seal all columns under the current key in this transaction, and commit. Raises `CannotReseal`."""
    return await resealing.reseal(sealer, SEALED, Change(session, None))
