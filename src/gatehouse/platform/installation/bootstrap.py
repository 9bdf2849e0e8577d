"""Creates the rows that must exist before the first request: the tenant `default`, its admin, a signing key, and the
sandbox.

Runs as the owner of the database after the migrations, at every start. Each step is idempotent.
"""

import secrets
from decimal import Decimal
from pathlib import Path
from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.jwt import SigningKey
from gatehouse.foundation.secrets.passwords import PasswordRefused, check_new, hash_now
from gatehouse.foundation.secrets.sealing import MasterKeys, Sealer
from gatehouse.foundation.secrets.tokens import digest, mint_api_key
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage.locks import GlobalLock
from gatehouse.platform.changes.change import CHANNEL, DEFAULT_TENANT
from gatehouse.platform.installation import first_admin

#: Display names of the sandbox's models in the initial catalog, by model id.
SANDBOX_MODELS: Final = {
    "echo": "Echo: answers with what it was asked",
    "slow-200ms": "Answers after 200 ms",
    "status-503": "Fails with 503",
    "stream-50": "Streams 50 chunks",
    "tools": "Calls the first tool it is given",
    "cut": "Breaks its stream off half-way",
    "embed": "Embeddings, deterministic",
    "moderation": "Moderations, deterministic",
    "rerank": "Reranks by common words",
    "image": "Images of one color",
    "transcription": "Transcriptions, deterministic",
    "speech": "Speech: silence",
}
#: The capabilities of the sandbox's models that do not chat.
_USES: Final = {
    "embed": "embeddings", "moderation": "moderation", "rerank": "rerank", "image": "image_generation",
    "transcription": "transcription", "speech": "speech",
}  # fmt: skip
#: Invented prices in USD per token, so that usage shows a cost.
_INPUT_TOKEN_USD: Final = Decimal("0.000001")
_OUTPUT_TOKEN_USD: Final = Decimal("0.000002")


def prepare(url: str, settings: Settings, master_keys: MasterKeys) -> None:
    """Create all initial rows in one transaction."""
    with psycopg.connect(url) as connection:
        # The lock serializes concurrent starts.
        connection.execute(GlobalLock.PLATFORM_FIRST_START.sql)
        connection.execute(
            "INSERT INTO tenants (id, slug, name) VALUES (%s, 'default', 'Default') ON CONFLICT DO NOTHING",
            [DEFAULT_TENANT],
        )
        ensure_signing_key(connection, Sealer(master_keys.keys, master_keys.current))
        if settings.sandbox:
            _ensure_sandbox(connection)
        _ensure_admin(connection, settings)


def ensure_signing_key(connection: psycopg.Connection[tuple[object, ...]], sealer: Sealer) -> None:
    """Add a signing key if none is active."""
    if connection.execute("SELECT 1 FROM signing_keys WHERE retired_at IS NULL").fetchone() is None:
        add_signing_key(connection, sealer)


def add_signing_key(connection: psycopg.Connection[tuple[object, ...]], sealer: Sealer) -> str:
    """Add a key, which becomes the key that signs tokens, and return its id."""
    key = SigningKey.generate()
    sealed = sealer.seal(key.private_pem(), context=f"signing_key:{key.kid}".encode())
    connection.execute(
        "INSERT INTO signing_keys (kid, public_jwk, sealed_private) VALUES (%s, %s, %s)",
        [key.kid, Jsonb(key.published()), str(sealed)],
    )
    return key.kid


def check_admin_password(settings: Settings) -> None:
    """Check `GATEHOUSE_ADMIN_PASSWORD` against the password rules. Raises `BadSettings`."""
    assert settings.gatehouse_admin_password is not None
    try:
        check_new(settings.gatehouse_admin_password.get_secret_value(), about=settings.gatehouse_admin_email)
    except PasswordRefused as error:
        raise BadSettings(f"GATEHOUSE_ADMIN_PASSWORD: {error.message}") from None


def _ensure_admin(connection: psycopg.Connection[tuple[object, ...]], settings: Settings) -> None:
    operators = connection.execute("SELECT 1 FROM users WHERE tenant_id = %s AND operator LIMIT 1", [DEFAULT_TENANT])
    if operators.fetchone() is not None:
        return
    email = settings.gatehouse_admin_email or "admin@gatehouse.local"
    configured_password = settings.gatehouse_admin_password
    if configured_password is not None:
        check_admin_password(settings)
        password = configured_password.get_secret_value()
    else:
        # The password is stored before the account exists, so that it is not lost if the start is killed between the
        # two steps.
        password = secrets.token_urlsafe(15)
        first_admin.store(settings.gatehouse_home, email, password)
    connection.execute(
        "INSERT INTO users (id, tenant_id, email, display_name, role, operator, password_hash)"
        " VALUES (%s, %s, %s, 'Administrator', 'admin', true, %s)",
        [new_id(), DEFAULT_TENANT, email, hash_now(password, about=email)],
    )


def _ensure_sandbox(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    inserted = connection.execute(
        "INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, 'sandbox', 'Sandbox', 'sandbox')"
        " ON CONFLICT DO NOTHING RETURNING id",
        [DEFAULT_TENANT],
    )
    if inserted.fetchone() is None:
        return
    for model_id, display_name in SANDBOX_MODELS.items():
        capabilities = {
            "streaming": model_id not in _USES, "function_calling": model_id == "tools", "vision": False,
            "structured_output": False, "embeddings": False, "max_context_window": 128_000,
        }  # fmt: skip
        if model_id in _USES:
            capabilities[_USES[model_id]] = True
        connection.execute(
            "INSERT INTO model_configs (id, tenant_id, provider, model_id, display_name, is_default, context_window,"
            " max_output_tokens, capabilities, cost_per_input_token, cost_per_output_token)"
            " VALUES (%s, %s, 'sandbox', %s, %s, %s, 128000, 4096, %s, %s, %s)",
            [
                new_id(), DEFAULT_TENANT, model_id, display_name, model_id == "echo",
                Jsonb(capabilities), _INPUT_TOKEN_USD, _OUTPUT_TOKEN_USD,
            ],
        )  # fmt: skip


def trial_key_file(url: str, settings: Settings) -> Path | None:
    """Return the file that contains an API key of the first admin, for the printed curl command. The key itself is
    never printed.

    This is only for embedded installations, where a user who can read the file can also read the database in the same
    folder. The key is minted once. Returns None if the key was deleted or disabled since.
    """
    path = (settings.gatehouse_home / "trial.key").absolute()
    with psycopg.connect(url) as connection:
        if path.exists():
            key = path.read_text().strip()
            rows = connection.execute("SELECT 1 FROM api_keys WHERE digest = %s AND is_enabled", [digest(key)])
            return path if rows.fetchone() is not None else None
        minted = mint_api_key()
        row = connection.execute(
            "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description)"
            " SELECT %s, tenant_id, id, %s, %s, 'printed at the first start' FROM users"
            " WHERE tenant_id = %s AND operator AND is_active ORDER BY created_at LIMIT 1 RETURNING id",
            [new_id(), minted.shown, minted.digest, DEFAULT_TENANT],
        ).fetchone()
        assert row is not None
        touch(connection, "api_key", str(row[0]))
    path.touch(mode=0o600)
    path.write_text(minted.plaintext + "\n")
    return path


def touch(connection: psycopg.Connection[tuple[object, ...]], topic: str, key: str) -> None:
    """Notify running workers to reload a row, as `Change.touch` does. The command line uses this function."""
    row = connection.execute("UPDATE revision_head SET revision = revision + 1 RETURNING revision").fetchone()
    assert row is not None
    connection.execute(
        "INSERT INTO changes (revision, tenant_id, topic, key) VALUES (%s, %s, %s, %s)",
        [row[0], DEFAULT_TENANT, topic, key],
    )
    connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(row[0])])
