"""The setting SMTP_URL."""

import pytest

from gatehouse.foundation.mail.smtp_url import parse_smtp_url

HIDDEN = "a-password-of-smtp"


@pytest.mark.parametrize(
    ("url", "host", "port", "tls", "login"),
    [
        ("smtp://mail.example.com", "mail.example.com", 587, "starttls", (None, None)),
        ("smtp://localhost:1025?tls=off", "localhost", 1025, "off", (None, None)),
        ("smtps://mail.example.com/", "mail.example.com", 465, "implicit", (None, None)),
        (
            f"smtp://ada%40example.com:{HIDDEN}%2F@[::1]:2525",
            "::1",
            2525,
            "starttls",
            ("ada@example.com", HIDDEN + "/"),
        ),
    ],
)
def test_a_url_contains_server_login_and_kind_of_tls(
    url: str, host: str, port: int, tls: str, login: tuple[str | None, str | None]
) -> None:
    server = parse_smtp_url(url)
    assert (server.host, server.port, server.tls, (server.username, server.password)) == (host, port, tls, login)
    assert HIDDEN not in repr(server)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mail.example.com:25", "an address like"),
        ("https://mail.example.com", "an address like"),
        ("smtp://", "an address like"),
        ("smtp://mail.example.com/inbox", "an address like"),
        (f"smtp://ada:{HIDDEN}/x@mail.example.com", "encode"),
        (f"smtp://ada:{HIDDEN}\uff0fx@mail.example.com", "encode"),
        ("smtp://mail.example.com:99999", "port"),
        ("smtp://ada@mail.example.com", "both user and password"),
        ("smtp://mail.example.com?tls=no", "only parameter"),
        ("smtp://mail.example.com?starttls=off", "only parameter"),
        ("smtps://mail.example.com?tls=off", "always encrypted"),
        (f"smtp://ada:{HIDDEN}@mail.example.com?tls=off", "only over TLS"),
    ],
)
def test_an_invalid_url_is_refused_by_a_message_without_its_parts(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        parse_smtp_url(url)
    assert HIDDEN not in str(error.value)
