"""The engine's ports, implemented with live state."""

import os

import pytest

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.live.ports import CredentialsUnreadable, SealedSecrets, sealing_context


def test_a_ciphertext_copied_to_another_row_cannot_be_decrypted() -> None:
    sealer = Sealer({"k": os.urandom(32)}, "k")
    mine, theirs = TenantId(new_id()), TenantId(new_id())
    sealed = sealer.seal(b'{"api_key": "secret"}', context=sealing_context(mine, "openai"))
    secrets = SealedSecrets(sealer)
    assert secrets.open(mine, "openai", sealed) is secrets.open(mine, "openai", sealed)
    for tenant, provider in ((theirs, "openai"), (mine, "thief")):
        with pytest.raises(CredentialsUnreadable):
            secrets.open(tenant, provider, sealed)
