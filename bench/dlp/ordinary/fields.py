"""Generates non-sensitive values for placeholders in templates: order numbers (`‹order›`), times (`‹iso›`), hashes
(`‹sha1›`) and others."""

import base64
import random
import re
import string
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

FIELD: Final = re.compile("‹([a-z0-9_]+)›")
_HEX: Final = "0123456789abcdef"
_BASE62: Final = string.ascii_letters + string.digits
_FIRST_TIME: Final = datetime(2021, 1, 1, tzinfo=UTC)

SERVICES: Final = (
    "billing", "checkout", "search", "gateway", "catalog", "shipping", "inventory", "reports", "mailer", "scheduler",
    "thumbnailer", "exporter", "webhooks", "sessions", "ledger", "pricing",
)  # fmt: skip
PACKAGES: Final = (
    "left-align", "color-mix", "tiny-router", "fast-csv-reader", "dateparts", "yamlish", "http-retry", "lru-store",
    "glob-walk", "semver-sort", "ansi-strip", "deep-merge-x", "json-path-lite", "stream-zip",
)  # fmt: skip
NAMES: Final = (
    "Anna", "Jonas", "Marta", "Luc", "Giulia", "Pieter", "Kasia", "Rui", "Elif", "Haruka", "Sofie", "Tomas", "Ines",
    "Paolo", "Lena", "Marek", "Deniz", "Yuto", "Clara", "Hugo",
)  # fmt: skip
CITIES: Final = (
    "Berlin", "Lyon", "Sevilla", "Torino", "Utrecht", "Gdynia", "Porto", "Izmir", "Osaka", "Leeds", "Denver", "Graz",
)  # fmt: skip
PRODUCTS: Final = (
    "desk lamp", "USB hub", "standing desk", "label printer", "travel mug", "bike light", "office chair", "keyboard",
    "docking station", "water filter",
)  # fmt: skip
COLUMNS: Final = ("quantity", "status", "region", "priority", "warehouse", "channel", "category", "currency")


class Fields:
    """The values of one document. Each use of a name gives a new value."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._clock = _FIRST_TIME + timedelta(seconds=self.random.randrange(5 * 365 * 86_400))

    def fill(self, template: str) -> str:
        return FIELD.sub(lambda match: self.value(match[1]), template)

    def value(self, name: str) -> str:
        generate = _GENERATORS.get(name)
        return generate(self) if generate else str(getattr(self, name)())

    def pick(self, choices: tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def digits(self, count: int) -> str:
        return str(self.random.randrange(10 ** (count - 1), 10**count))

    def characters(self, count: int, alphabet: str = _BASE62) -> str:
        return "".join(self.random.choices(alphabet, k=count))

    def hexadecimal(self, count: int) -> str:
        return self.characters(count, _HEX)

    def next_time(self) -> datetime:
        """Return a time that is later than the previous time in the document."""
        self._clock += timedelta(seconds=self.random.expovariate(1 / 240), microseconds=self.random.randrange(10**6))
        return self._clock

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def npm_integrity(self) -> str:
        return "sha512-" + base64.b64encode(self.random.randbytes(64)).decode()

    def id24(self) -> str:
        return self.characters(24)

    def ulid(self) -> str:
        return "01" + self.characters(24, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")

    def grouped(self, separator: str, size: int) -> str:
        return f"{self.random.randrange(10 ** (size - 1), 10**size):,}".replace(",", separator)


def _time(time_format: str) -> Callable[[Fields], str]:
    return lambda fields: fields.next_time().strftime(time_format)


def _number(low: int, high: int) -> Callable[[Fields], str]:
    return lambda fields: str(fields.random.randint(low, high))


def _decimal(low: float, high: float, places: int) -> Callable[[Fields], str]:
    return lambda fields: f"{fields.random.uniform(low, high):.{places}f}"


def _one_of(*templates: str) -> Callable[[Fields], str]:
    return lambda fields: fields.fill(fields.random.choice(templates))


_GENERATORS: Final[dict[str, Callable[[Fields], str]]] = {
    # times
    "iso": lambda f: f.next_time().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "date": _time("%Y-%m-%d"),
    "date_dots": _time("%d.%m.%Y"),
    "date_slashes": _time("%d/%m/%Y"),
    "clock": _time("%H:%M"),
    "clock_seconds": _time("%H:%M:%S"),
    "clock_log": _time("%H:%M:%S,%f"),
    "timestamp_digits": _time("%Y%m%d%H%M%S"),
    "timestamp_digits_minutes": _time("%Y%m%d%H%M"),
    "day_compact": _time("%Y%m%d"),
    "month_compact": _time("%Y%m"),
    "log_date": _time("%d/%b/%Y:%H:%M:%S +0000"),
    "mail_date": _time("%a, %d %b %Y %H:%M:%S +0000"),
    "git_date": _time("%a %b %d %H:%M:%S %Y +0100"),
    "epoch": lambda f: str(int(f.next_time().timestamp())),
    "epoch_ms": lambda f: str(int(f.next_time().timestamp() * 1000)),
    "epoch_us": lambda f: str(int(f.next_time().timestamp() * 1_000_000)),
    "epoch_ns": lambda f: str(int(f.next_time().timestamp() * 1_000_000) * 1000 + f.random.randrange(1000)),
    "epoch_float": lambda f: f"{f.next_time().timestamp():.6f}",
    # numbers
    "digit": _number(1, 9),
    "number_2_to_60": _number(2, 60),
    "count": _number(100, 9_999),
    "number5": lambda f: f.digits(5),
    "number6": lambda f: f.digits(6),
    "number7": lambda f: f.digits(7),
    "number8": lambda f: f.digits(8),
    "number9": lambda f: f.digits(9),
    "number10": lambda f: f.digits(10),
    "number11": lambda f: f.digits(11),
    "number12": lambda f: f.digits(12),
    "number13": lambda f: f.digits(13),
    "number14": lambda f: f.digits(14),
    "number15": lambda f: f.digits(15),
    "number17": lambda f: f.digits(17),
    "number18": lambda f: f.digits(18),
    "positive_i64": lambda f: str(f.random.getrandbits(63)),
    "hexpair": lambda f: f.hexadecimal(2),
    # Begins with 9, because nearly no card number of 16 digits does.
    "number16": lambda f: "9" + f.digits(15),
    "snowflake": lambda f: str(f.random.randrange(10**18, 15 * 10**17)),
    "bytes": lambda f: str(int(10 ** f.random.uniform(3, 11.5))),
    "millis": _number(1, 4_000),
    "port": _number(1024, 65_535),
    "line": _number(3, 2_400),
    "pid": _number(200, 4_194_304),
    "percent": _decimal(0, 100, 1),
    "ratio": _decimal(0, 1, 4),
    "float6": _decimal(0, 900, 6),
    "latitude": _decimal(-60, 70, 4),
    "longitude": _decimal(-170, 170, 4),
    "celsius": _decimal(-8, 36, 1),
    "price": _decimal(1, 900, 2),
    "price_comma": lambda f: f"{f.random.uniform(1, 900):.2f}".replace(".", ","),
    "space_grouped": lambda f: f.grouped(" ", f.random.choice((7, 8, 9))),
    "space_grouped_billions": lambda f: f.grouped(" ", f.random.choice((10, 11))),
    "comma_grouped": lambda f: f.grouped(",", f.random.choice((7, 8, 9, 10))),
    "dot_grouped": lambda f: f.grouped(".", f.random.choice((7, 8, 9, 10))),
    "round_million": lambda f: f"{f.random.choice((100, 120, 150, 200, 250, 300, 450, 500, 750))} 000 000",
    "status": lambda f: f.pick(("200", "200", "200", "201", "204", "301", "304", "400", "404", "500", "503")),
    # ids, phone numbers, years and IP addresses
    "uuid_upper": lambda f: f.uuid().upper(),
    "sha1": lambda f: f.hexadecimal(40),
    "short_sha": lambda f: f.hexadecimal(7),
    "sha256": lambda f: f.hexadecimal(64),
    "md5": lambda f: f.hexadecimal(32),
    "hex3": lambda f: f.hexadecimal(3),
    "hex6": lambda f: f.hexadecimal(6),
    "id5": lambda f: f.characters(5),
    "hex8": lambda f: f.hexadecimal(8),
    "hex12": lambda f: f.hexadecimal(12),
    "hex16": lambda f: f.hexadecimal(16),
    "hex24": lambda f: f.hexadecimal(24),
    "id12": lambda f: f.characters(12),
    "id20": lambda f: f.characters(20),
    "alphanumeric10": lambda f: f.characters(10, string.ascii_uppercase + string.digits),
    "alphanumeric12": lambda f: f.characters(12, string.ascii_uppercase + string.digits),
    "base64_44": lambda f: base64.b64encode(f.random.randbytes(32)).decode(),
    "pod": lambda f: f"{f.pick(SERVICES)}-{f.hexadecimal(9)}-{f.characters(5, 'bcdfghjklmnpqrstvwxz2456789')}",
    "version": lambda f: f"{f.random.randrange(12)}.{f.random.randrange(30)}.{f.random.randrange(20)}",
    "order": _one_of(
        "‹number6›",
        "‹number8›",
        "‹number9›",
        "‹number10›",
        "ORD-‹number7›",
        "INV-‹month_compact›-‹number4›",
        "‹day_compact›-‹number4›",
        "‹year2›‹number4›-‹number4›",
        "SO‹number7›",
        "B‹number9›",
        "#‹number5›",
        "‹number4›-‹number4›-‹number4›",
        "‹number3›-‹number7›-‹number7›",
        "PO ‹number9›",
        "‹alphanumeric10›",
        "‹month_compact›/‹number4›",
        "R‹number10›",
        "AB‹number7›",
    ),
    "number3": lambda f: f.digits(3),
    "number4": lambda f: f.digits(4),
    "year2": _time("%y"),
    "ticket": _one_of("OPS-‹count›", "SUP-‹number5›", "#‹number6›", "INC‹number7›", "CASE-‹number8›", "RITM‹number7›"),
    "tracking": _one_of("1Z‹alphanumeric16›", "JD0‹number12›‹number5›", "RR‹number9›DE", "‹number12›", "‹number13›"),
    "alphanumeric16": lambda f: f.characters(16, string.ascii_uppercase + string.digits),
    "sku": _one_of(
        "‹upper3›-‹number4›-‹upper2›", "‹upper2›‹number5›", "‹number13›", "‹upper3›‹number5›‹upper1›", "KB‹number7›"
    ),
    "upper1": lambda f: f.characters(1, string.ascii_uppercase),
    "upper2": lambda f: f.characters(2, string.ascii_uppercase),
    "upper6": lambda f: f.characters(6, string.ascii_uppercase),
    "upper3": lambda f: f.characters(3, string.ascii_uppercase),
    "phone": _one_of(
        "+1 ‹nanp3›-‹nanp3›-‹number4›",
        "‹nanp3›-‹nanp3›-‹number4›",
        "(‹nanp3›) ‹nanp3›-‹number4›",
        "+49 30 ‹number8›",
        "+33 1 ‹number2› ‹number2› ‹number2› ‹number2›",
        "+34 6‹number2› ‹number3› ‹number3›",
        "6‹number2› ‹number3› ‹number3›",
        "+48 5‹number2› ‹number3› ‹number3›",
        "5‹number2›-‹number3›-‹number3›",
        "030 ‹number8›",
        "+90 5‹number2› ‹number3› ‹number2› ‹number2›",
        "+81 90-‹number4›-‹number4›",
        "+44 20 ‹number4› ‹number4›",
        "‹nanp3›.‹nanp3›.‹number4›",
        "‹nanp3› ‹nanp3› ‹number4›",
    ),
    "nanp3": lambda f: str(f.random.randint(201, 989)),
    "number2": lambda f: f.digits(2),
    "ip": lambda f: ".".join(str(f.random.randrange(1, 255)) for _ in range(4)),
    # words
    "name": lambda f: f.pick(NAMES),
    "city": lambda f: f.pick(CITIES),
    "service": lambda f: f.pick(SERVICES),
    "package": lambda f: f.pick(PACKAGES),
    "product": lambda f: f.pick(PRODUCTS),
    "column": lambda f: f.pick(COLUMNS),
    "size": _one_of(
        "‹number_2_to_60›.‹digit› GB", "‹count› KB", "‹bytes› bytes", "‹number_2_to_60› MiB", "‹comma_grouped› B"
    ),
    "amount": _one_of("EUR ‹price›", "‹price_comma› €", "$‹price›", "‹comma_grouped› USD", "£‹price›"),
    "file": _one_of(
        "‹service›_‹timestamp_digits_minutes›.csv",
        "IMG_‹day_compact›_‹number6›.jpg",
        "scan-‹number8›.pdf",
        "‹service›-‹version›.tar.gz",
        "report_‹month_compact›.xlsx",
        "backup_‹timestamp_digits›.sql.gz",
        "screenshot ‹date›.png",
    ),
    "code_path": _one_of(
        "src/‹service›/main.py", "lib/‹service›/index.ts", "cmd/‹service›/main.go", "app/models/‹service›.rb"
    ),
}
