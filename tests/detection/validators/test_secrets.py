"""Values that are treated as secrets, and values that are not."""

import base64

import pytest

from gatehouse.detection.catalog.example_tokens import BASE62, HEX, random_characters
from gatehouse.detection.validators import both, secrets


@pytest.mark.parametrize(
    "value",
    [
        "your_password_here", "${VAR}", "$VAR", "<secret>", "xxxxxxxx", "********", "{{ password }}", "%PASSWORD%",
        "changeme", "example-key-1", "<your key>", "...", "INSERT_KEY_HERE", "#{secret}", "my-fake-key1",
        "process.env.KEY", "[redacted]", "&lt;", "%s", "abcdefghijk1", "TODO_1", "vault:secret/key1",
    ],
)  # fmt: skip
def test_a_placeholder_is_not_a_secret(value: str) -> None:
    assert secrets.placeholder(value) or secrets.password(value) is False


@pytest.mark.parametrize("value", ["hunter2!x", "Tr0ub4dor&3", "p@ss/w0rd", "A,.:-1*¿?!", "s3cr3t"])
def test_a_likely_password_is_accepted(value: str) -> None:
    assert secrets.password(value) is None
    assert secrets.bare_password(value) is None


@pytest.mark.parametrize(
    "value", ["abc", "!!!!!!", "password", "real_key", "12345678", "https://host/1", "two words 1"]
)
def test_words_numbers_and_addresses_are_not_passwords(value: str) -> None:
    assert secrets.password(value) is False


@pytest.mark.parametrize("value", ["get_password(1)", "self.password2", "os.environ['A1']", "args.pw1,", "[1, 2]"])
def test_code_without_quotes_is_not_a_password(value: str) -> None:
    assert secrets.bare_password(value) is False


@pytest.mark.parametrize("value", ["admin", "letmein", "12345678"])
def test_a_word_in_a_settings_file_may_be_a_password(value: str) -> None:
    assert secrets.configured(value) is None


@pytest.mark.parametrize("value", ["true", "null", "${X}", "/run/secrets/key", "https://host", "ab", "123"])
def test_some_values_in_a_settings_file_are_not_passwords(value: str) -> None:
    assert secrets.configured(value) is False


def test_a_random_text_may_be_a_key() -> None:
    assert secrets.assigned_key(3.0)(random_characters(32)) is None


@pytest.mark.parametrize(
    "value",
    [
        "rc0.15.0_20231217-SNAPSHOT",
        "aaaaaaaaaaaaaaaaaaa1",
        "jsonwebtoken-jackson-0.11.2",
        "only-words",
        "exports/mailer/20221025222249-86775867.parquet",
    ],
)
def test_versions_names_and_repeated_characters_are_not_keys(value: str) -> None:
    assert secrets.assigned_key(3.0)(value) is False


def test_entropy_is_bits_a_character() -> None:
    assert secrets.entropy("") == 0
    assert secrets.entropy("aaaa") == 0
    assert secrets.entropy("abcd") == 2
    assert secrets.entropy(HEX) == 4


def test_a_token_has_no_filler_and_enough_entropy() -> None:
    assert secrets.token(3.0)("tok_" + random_characters(30)) is None
    assert secrets.token(3.0)("tok_" + "x" * 30) is False
    assert secrets.token(3.0)("tok_" + "ab" * 15) is False


def test_the_crc_of_a_github_token_proves_it() -> None:
    # GitHub's published example of the format
    specimen = "ghp_" + "zQWBuTSOoRi4A9spHcVY" + "5ncnsDkxkJ0mLq17"
    assert secrets.crc32_base62(specimen) is True
    assert secrets.crc32_base62(specimen[:-1] + "8") is None
    assert secrets.crc32_base62("ghp_short") is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [(b'{"alg":"HS256"}', True), (b'{"typ":"JWT"}', True), (b'{"a":1}', False), (b"[1]", False), (b"no json", False)],
)
def test_the_header_of_a_jwt_decodes(header: bytes, expected: bool) -> None:
    encoded = base64.urlsafe_b64encode(header).decode().rstrip("=")
    assert secrets.jwt(f"{encoded}.e30.sig") is expected


@pytest.mark.parametrize(
    ("clear", "expected"), [(b"user:pw", None), (b"user:", False), (b"\xff:\x00", False), (b"u", False)]
)
def test_basic_credentials_decode_to_user_and_password(clear: bytes, expected: bool | None) -> None:
    assert secrets.user_and_password(base64.b64encode(clear).decode()) is expected


@pytest.mark.parametrize(
    ("inside", "expected"), [(random_characters(64, BASE62), None), ("anything", False), ("x" * 40, False), ("", False)]
)
def test_a_private_key_has_a_body(inside: str, expected: bool | None) -> None:
    text = "-----BEGIN " + f"PRIVATE KEY-----\n{inside}\n-----END " + "PRIVATE KEY-----"
    assert secrets.private_key_body(text) is expected


def test_the_first_failing_check_decides() -> None:
    assert both(lambda text: True, lambda text: False)("a") is False
    assert both(lambda text: None, lambda text: True)("a") is True
    assert both(lambda text: None)("a") is None
