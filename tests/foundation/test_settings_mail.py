"""The settings of mail are required together."""

import pytest

from gatehouse.foundation.settings import BadSettings, Settings

HIDDEN = "a-password-of-smtp"
ALL = {
    "SMTP_URL": f"smtp://gatehouse:{HIDDEN}@smtp.example.com",
    "MAIL_FROM": "Gatehouse <gatehouse@example.com>",
    "PUBLIC_URL": "https://gatehouse.example.com",
}


def test_mail_is_configured_if_all_settings_are_set() -> None:
    mail = Settings.from_environment(ALL).mail
    assert mail is not None
    assert (mail.server.host, mail.server.password) == ("smtp.example.com", HIDDEN)
    assert (mail.sender, mail.public_url) == (ALL["MAIL_FROM"], ALL["PUBLIC_URL"])
    assert HIDDEN not in repr(Settings.from_environment(ALL)) + repr(mail)
    assert Settings.from_environment({}).mail is None
    assert Settings.from_environment({"PUBLIC_URL": ALL["PUBLIC_URL"]}).mail is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"MAIL_FROM": ""}, "MAIL_FROM: needed with SMTP_URL"),
        ({"PUBLIC_URL": ""}, "PUBLIC_URL: needed with SMTP_URL"),
        ({"SMTP_URL": ""}, "SMTP_URL: needed with MAIL_FROM"),
        ({"SMTP_URL": f"smtp://gatehouse:{HIDDEN}@smtp.example.com?tls=off"}, "SMTP_URL: .*only over TLS"),
        ({"MAIL_FROM": "Gatehouse"}, "MAIL_FROM: .*an address"),
        ({"MAIL_FROM": "a@example.com\r\nBcc: b@example.com"}, "MAIL_FROM: .*line breaks"),
    ],
)
def test_incomplete_or_invalid_mail_settings_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings, match=message) as error:
        Settings.from_environment(ALL | changed)
    assert HIDDEN not in str(error.value)
