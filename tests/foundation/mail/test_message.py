"""Messages have two parts, and neither subjects nor addresses can add headers to them."""

from email import message_from_bytes, policy

import pytest

from gatehouse.foundation.mail.message import MAX_MESSAGE_BYTES, Mail, OversizedMail, build_message, parse_sender

SENDER = parse_sender("Gatehouse Mail <gatehouse@example.com>")
INJECTION = "Evil\r\nBcc: victim@example.com\r\n\r\nBuy now"


def mail(recipient: str = "ada@example.com", subject: str = "Hello", text: str = "a text") -> Mail:
    return Mail(recipient, subject, text, "<p>a text</p>", secret="")


def test_a_message_has_both_parts_and_is_marked_as_automatic() -> None:
    message = message_from_bytes(build_message(mail(), SENDER, "an-id").as_bytes(), policy=policy.default)
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert (message["From"], message["To"]) == ("Gatehouse Mail <gatehouse@example.com>", "ada@example.com")
    assert (message["Message-ID"], message["Auto-Submitted"]) == ("<an-id@example.com>", "auto-generated")
    assert message["Date"].datetime.tzinfo is not None


def test_a_subject_cannot_add_a_header() -> None:
    written = build_message(mail(subject=INJECTION + " x" * 500), SENDER, "an-id").as_bytes()
    message = message_from_bytes(written, policy=policy.default)
    assert message["Bcc"] is None
    assert message["Subject"].startswith("Evil Bcc: victim@example.com Buy now")
    assert len(message["Subject"]) == 200


@pytest.mark.parametrize(
    "recipient", [INJECTION, "ada@example.com\nBcc: x@example.com", "ada@example.com, bob@example.com", "ada", ""]
)
def test_a_recipient_must_be_one_address(recipient: str) -> None:
    with pytest.raises(ValueError, match="not an e-mail address"):
        build_message(mail(recipient), SENDER, "an-id")


def test_a_domain_of_another_script_is_written_in_ascii() -> None:
    assert build_message(mail("ada@bücher.example"), SENDER, "an-id")["To"] == "ada@xn--bcher-kva.example"


def test_the_size_of_a_message_is_limited() -> None:
    with pytest.raises(OversizedMail):
        build_message(mail(text="x" * MAX_MESSAGE_BYTES), SENDER, "an-id")


@pytest.mark.parametrize("value", ["", "Gatehouse", "a@b@c", "Gatehouse\n <a@example.com>", "a@example.com\r\nBcc: x"])
def test_a_sender_must_be_an_address(value: str) -> None:
    with pytest.raises(ValueError, match="an address"):
        parse_sender(value)
