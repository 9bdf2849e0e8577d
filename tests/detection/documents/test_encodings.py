"""Text in different encodings."""

import random

import pytest

from gatehouse.detection.documents.encodings import DecodedText, begins_like_text, decoded, guessed
from gatehouse.detection.documents.reading import read

CARD = "4111 1111 1111 1111"
LATIN = f"Der Schlüssel für die Tür: {CARD}, an François übergeben."
JAPANESE = f"顧客番号とカードは {CARD} です。東京都新宿区の佐藤さんの連絡先はこちらです。"
RUSSIAN = f"Номер карты {CARD}, никому не говорите. Спасибо за вашу помощь."


def at_once(data: bytes) -> DecodedText | None:
    steps = decoded(data)
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            text: DecodedText | None = stopped.value
            return text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("", "utf-8"),
        (LATIN, "utf-8"),
        (JAPANESE, "utf-8"),
        ("\ufeff" + LATIN, "utf-8"),
        ("\ufeff" + LATIN, "utf-16-le"),
        ("\ufeff" + JAPANESE, "utf-16-be"),
        ("\ufeff" + LATIN, "utf-32-le"),
        ("\ufeff" + LATIN, "utf-32-be"),
        (LATIN, "utf-16-le"),
        (LATIN, "utf-16-be"),
        (JAPANESE, "utf-16-le"),
        (f"\x1b[31merror\x1b[0m {CARD}\x1b[K\r\n", "utf-8"),
        (f"page\f{CARD}\b", "utf-8"),
        (f"a log that was cut\0\0\0\0 {CARD}", "utf-8"),
        (f"résumé of the customer with {CARD}, who paid for everything that was on the list", "cp1252"),
    ],
)
def test_unicode_and_nearly_ascii_are_recognized_without_a_guess(text: str, encoding: str) -> None:
    assert at_once(text.encode(encoding)) == DecodedText(text, encoding)
    assert begins_like_text(text.encode(encoding))


def test_a_bad_byte_does_not_hide_a_text() -> None:
    for place in (0, 10, len(LATIN)):
        data = LATIN.encode()[:place] + b"\xff" + LATIN.encode()[place:]
        text = at_once(data)
        assert text is not None
        assert CARD in text.text


def test_a_long_text_is_decoded_whole_and_in_steps() -> None:
    text = "Ä" * 999_999 + CARD
    steps = sum(1 for _ in decoded(text.encode()))
    assert steps >= 2 * len(text.encode()) // (256 * 1024)
    assert at_once(text.encode()) == DecodedText(text, "utf-8")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (f"신용카드 번호는 {CARD} 입니다. 아무에게도 말하지 마세요.", "euc_kr"),
        (f"信用卡号码是 {CARD}。请不要告诉别人。谢谢你的帮助。", "gb18030"),
    ],
)
def test_other_encodings_are_guessed(text: str, encoding: str) -> None:
    data = (text * 3).encode(encoding)
    assert begins_like_text(data)
    reading = read(data)
    assert reading.text == text * 3
    assert reading.unread == ()
    assert reading.encoding is not None
    assert reading.text.encode(reading.encoding) == data


def test_only_a_few_lines_of_a_long_text_are_used_to_guess_its_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = __import__("charset_normalizer").from_bytes
    monkeypatch.setattr("charset_normalizer.from_bytes", lambda data: seen.append(len(data)) or real(data))
    data = (b"a line of ASCII\n" * 50_000) + (JAPANESE + "\n").encode("shift_jis") * 5_000
    text = guessed(data)
    assert text is not None
    assert text.text.endswith(JAPANESE + "\n")
    assert max(seen) <= 32 * 1024


def test_binary_data_is_not_text() -> None:
    chance = random.Random(3)
    for size in (100, 1_000, 100_000):
        data = chance.randbytes(size)
        assert at_once(data) is None
        assert guessed(data) is None
        assert not begins_like_text(data[:768])
