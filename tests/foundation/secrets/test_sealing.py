import stat
from base64 import b64encode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from gatehouse.foundation.secrets.sealing import (
    CannotOpen,
    Sealer,
    Tampered,
    UnknownSealingKey,
    load_master_keys,
)
from gatehouse.foundation.settings import BadSettings, Settings

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
SEALER = Sealer({"k2": NEW, "k1": OLD}, "k2")
CONTEXT = b"tenant-1/provider-7"
SEALED = SEALER.seal(b"sk-verysecret", context=CONTEXT)


@given(st.binary(max_size=300), st.binary(max_size=50))
def test_a_sealed_text_opens_in_its_context(plaintext, context):
    assert SEALER.open(SEALER.seal(plaintext, context=context), context=context) == plaintext


def test_the_same_text_seals_differently_each_time():
    assert SEALER.seal(b"x", context=b"") != SEALER.seal(b"x", context=b"")


@pytest.mark.parametrize(
    "sealed",
    [
        "",
        "v1",
        "v1.k2",
        "v1.k2.",
        "v1..AAAA",
        "v2" + SEALED[2:],
        "v1.k2.AAAA",
        "v1.k2.***",
        "v1.k2.é",
        "v1.k é.AAAA",
        "v1.k1" + SEALED[5:],
        SEALED[:-4],
        SEALED + "AAAA",
        SEALED + "=",
        SEALED + "\n",
        SEALED[:20] + ("A" if SEALED[20] != "A" else "B") + SEALED[21:],
    ],
)
def test_a_changed_text_does_not_open(sealed):
    with pytest.raises(Tampered) as caught:
        SEALER.open(sealed, context=CONTEXT)
    assert "verysecret" not in str(caught.value)


@pytest.mark.parametrize("context", [b"", b"tenant-2/provider-7", CONTEXT + b"x"])
def test_a_text_copied_to_another_context_does_not_open(context):
    with pytest.raises(Tampered):
        SEALER.open(SEALED, context=context)


def test_another_key_of_the_same_id_does_not_open():
    with pytest.raises(Tampered):
        Sealer({"k2": OLD}, "k2").open(SEALED, context=CONTEXT)


def test_a_missing_key_is_named():
    with pytest.raises(UnknownSealingKey, match="k2"):
        Sealer({"k1": OLD}, "k1").open(SEALED, context=CONTEXT)


@given(st.text(max_size=200))
def test_every_invalid_text_is_refused(sealed):
    with pytest.raises(CannotOpen):
        SEALER.open(sealed, context=b"")


def test_rotation_moves_texts_to_the_current_key():
    before = Sealer({"k1": OLD}, "k1").seal(b"secret", context=CONTEXT)
    after = SEALER.reseal(before, context=CONTEXT)
    assert after.startswith("v1.k2.")
    assert SEALER.open(after, context=CONTEXT) == b"secret"
    assert SEALER.reseal(after, context=CONTEXT) == after


@pytest.mark.parametrize(
    ("keys", "current"), [({"k": OLD}, "j"), ({"k": OLD[:16]}, "k"), ({"a.b": OLD}, "a.b"), ({"": OLD}, ""), ({}, "k")]
)
def test_a_sealer_accepts_only_keys_of_32_bytes(keys, current):
    with pytest.raises(ValueError):
        Sealer(keys, current)


def settings(home, key=None, database=None):
    return Settings(gatehouse_home=home, gatehouse_master_key=SecretStr(key) if key else None, database_url=database)


def text(key):
    return b64encode(key).decode()


def test_several_keys_may_be_given_and_the_first_is_current(tmp_path):
    keys = load_master_keys(settings(tmp_path, f"k2:{text(NEW)}, k1:{text(OLD)}"))
    assert (keys.current, keys.keys) == ("k2", {"k2": NEW, "k1": OLD})
    assert text(NEW) not in repr(keys)
    assert str(NEW) not in repr(keys)


def test_a_key_without_an_id_has_a_derived_id(tmp_path):
    first = load_master_keys(settings(tmp_path, text(NEW)))
    same_key = load_master_keys(settings(tmp_path, urlsafe_b64encode(NEW).decode()))
    other_key = load_master_keys(settings(tmp_path, text(OLD)))
    assert first.current == same_key.current != other_key.current
    assert list(first.keys.values()) == [NEW]


@pytest.mark.parametrize(
    "key",
    [
        "x",
        text(NEW)[:-4],
        text(NEW) + "AAAA",
        f"k:{text(NEW)},k:{text(OLD)}",
        f"k!:{text(NEW)}",
        f"{text(NEW)},",
        ":",
        ",",
    ],
)
def test_a_bad_key_is_refused_without_showing_it(tmp_path, key):
    with pytest.raises(BadSettings) as caught:
        load_master_keys(settings(tmp_path, key))
    assert text(NEW)[:20] not in str(caught.value)


def test_with_an_external_database_a_key_is_required(tmp_path):
    with pytest.raises(BadSettings, match="Make a key"):
        load_master_keys(settings(tmp_path, database="postgresql://x"))
    assert not list(tmp_path.iterdir())


def test_an_embedded_key_is_created_once_and_only_its_user_can_read_it(tmp_path):
    home = tmp_path / "new" / "home"
    first = load_master_keys(settings(home))
    assert load_master_keys(settings(home)) == first
    assert stat.S_IMODE((home / "master.key").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["master.key"]


def test_processes_that_start_together_agree_on_one_key(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: load_master_keys(settings(tmp_path)).current, range(64)))
    assert len(set(results)) == 1


def test_a_key_that_others_can_read_is_refused(tmp_path):
    load_master_keys(settings(tmp_path))
    (tmp_path / "master.key").chmod(0o644)
    with pytest.raises(BadSettings, match="chmod 600"):
        load_master_keys(settings(tmp_path))
