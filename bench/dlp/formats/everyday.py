"""Phone numbers, dates, payment cards and IBANs in the notations of many countries, and network addresses."""

from collections.abc import Iterator
from random import Random
from typing import Final

from bench.dlp.formats.generation import Format, ValueGenerator, from_template

#: Phone numbers by country. `#` is a digit, and `%` is a digit from 2 to 9.
_PHONES: Final = {
    "US": ("%##-%##-####", "(%##)%##-####", "(%##) %##-####", "%##.%##.####", "+1-%##-%##-####", "001-%##-%##-####x###"),
    "UK": ("+44(0)%### ######", "+44 %### ######", "0%## #######", "(0%###) ######", "0%### ######", "+44 20 #### ####"),
    "Germany": ("+49(0)%#########", "+49 %### ######", "0%### ######", "(0%###) ######", "0%##/######", "0%## ########"),
    "France": ("+33 (0)% ## ## ## ##", "+33 % ## ## ## ##", "0% ## ## ## ##", "0%.##.##.##.##", "0%########"),
    "Italy": ("+39 %## #######", "+39 0# ########", "%## #######", "0%# ########", "+39 %## ## ## ###"),
    "Spain": ("+34 %## ### ###", "+34 %## ## ## ##", "%## ### ###", "%## ## ## ##", "+34%########"),
    "Netherlands": ("+31(0)%# #######", "+31 %# ### ####", "0%#-#######", "06-########", "(0%#) #######"),
    "Belgium": ("+32 4## ## ## ##", "04##/## ## ##", "02 ### ## ##"),
    "Sweden": ("+46 (0)% ### ## ##", "0%#-### ## ##", "0%##-######", "+46 %# ### ## ##"),
    "Norway": ("+47 %## ## ###", "+47 ## ## ## ##", "+47%#######"),
    "Denmark": ("+45 %# ## ## ##", "+45%#######"),
    "Finland": ("+358 %# #######", "0%# ### ####", "04# #######"),
    "Poland": ("+48 %## ### ###", "%## ### ###", "%##-###-###"),
    "Czechia": ("+420 %## ### ###", "%## ### ###"),
    "Hungary": ("+36 %# ###-####", "+36 %# ### ####", "06 %# ### ####"),
    "Switzerland": ("+41 %# ### ## ##", "0%# ### ## ##", "+41 (0)%# ### ## ##"),
    "Austria": ("+43 %## ######", "0%## ######", "0664 #######"),
    "Portugal": ("+351 %## ### ###", "%## ### ###"),
    "Brazil": ("+55 (%#) %####-####", "(%#) %####-####", "+55 %# %#### ####", "%# ####-####"),
    "Mexico": ("+52 %## ### ####", "+52 1 %## ### ####"),
    "Argentina": ("+54 9 %# ####-####", "+54 %# #### ####"),
    "Russia": ("+7 (%##) ###-##-##", "+7 %## ### ####", "8 (%##) ###-##-##", "8 %## ### ## ##"),
    "Ukraine": ("+380 %# ### ## ##", "0%# ### ## ##"),
    "Turkey": ("+90 (%##) ### ## ##", "+90 %## ### ## ##", "0%## ### ## ##", "0(%##) ### ## ##"),
    "Israel": ("+972-%#-#######", "0%#-#######", "05#-###-####"),
    "India": ("+91 9####-#####", "+91 9#########", "09#########", "98### #####"),
    "China": ("+86 1%# #### ####", "1%#-####-####", "010-########"),
    "Japan": ("+81 %#-####-####", "0%0-####-####", "03-####-####"),
    "Korea": ("+82 10-####-####", "010-####-####", "02-###-####"),
    "Australia": ("+61 4## ### ###", "04## ### ###", "(0%) #### ####", "0% #### ####", "+61 % #### ####"),
    "New Zealand": ("+64 2# ### ####", "02# ### ####", "0% ### ####"),
    "Singapore": ("+65 9### ####", "9### ####"),
    "South Africa": ("+27 %# ### ####", "0%# ### ####"),
    "Nigeria": ("+234 80# ### ####", "080# ### ####"),
    "Philippines": ("+63 9## ### ####", "09## ### ####"),
}  # fmt: skip
_PHONE_CONTEXTS: Final = (
    "my phone number is {}",
    "call me at {}",
    "Phone: {}",
    "tel. {}",
    "Mobile {}",
    "you can reach me at {} after six",
    "please send messages to {}",
    "fax {}, or write",
)
#: Notations of dates. `year2` is a year of two digits, and `month3` and `MONTH3` are a month of three letters.
_DATES: Final = (
    "{day:02}/{month:02}/{year}", "{month:02}/{day:02}/{year}", "{day}/{month}/{year}", "{year}-{month:02}-{day:02}",
    "{year}/{month:02}/{day:02}", "{day:02}.{month:02}.{year}", "{day}.{month}.{year}", "{day:02}-{month:02}-{year}",
    "{year}-{month}-{day}", "{year}/{month}/{day}", "{month:02}/{day:02}/{year2}", "{day:02}.{month:02}.{year2}",
    "{month_name} {day}, {year}", "{day} {month_name} {year}", "{month3} {day}, {year}", "{day} {month3} {year}",
    "{day:02}-{month3}-{year}", "{day:02}-{MONTH3}-{year}", "{month_name} {year}", "{month3} {year}", "{MONTH3}-{year}",
    "{day}th of {month_name} {year}", "{month_name} {day}th, {year}", "{year}-{month:02}-{day:02}T12:34:56Z",
    "{year}-{month:02}-{day:02} 12:34:56", "{year}-{month:02}-{day:02}T12:34:56.123+02:00", "{month_name} {day}", "{day} {month_name}",
    "{day:02}-{MONTH3}", "{month:02}/{year}", "{year}{month:02}{day:02}", "{day}. {month_name} {year}", "{year}.{month:02}.{day:02}",
    "the {day}th of {month_name}", "{month3}. {day}, {year}", "{day:02} {month:02} {year}",
)  # fmt: skip
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE_CONTEXTS: Final = (
    "It was on {} that we met.",
    "date: {}",
    "the contract of {} ends",
    "DOB: {}",
    "{}",
    "valid until {}",
)
#: Prefixes and total lengths of card numbers, by name.
_CARDS: Final = {
    "Visa": ("4", 16), "Visa, 13": ("4", 13), "Visa, 19": ("4", 19), "Mastercard": ("53", 16), "Mastercard, new": ("2231", 16),
    "American Express": ("37", 15), "Discover": ("6011", 16), "Discover, 65": ("65", 16), "Diners Club": ("36", 14),
    "Diners Club, 30": ("301", 14), "Diners Club, 38": ("38", 14), "JCB": ("3528", 16), "JCB, 15": ("2131", 15),
    "JCB, 1800": ("1800", 15), "Maestro, 12": ("6759", 12), "Maestro, 12, 5018": ("5018", 12), "Maestro, 16": ("5020", 16),
    "UnionPay": ("62", 16), "UnionPay, 19": ("62", 19), "Maestro, 0604": ("0604", 12), "Mir": ("2200", 16),
    "RuPay": ("6069", 16), "Troy": ("9792", 16),
}  # fmt: skip
_CARD_CONTEXTS: Final = (
    "my credit card is {}", "card number: {}", "pay with {} please", "{}", "charge my visa {}", "I lost my card {}.",
    "cc {} exp 12/27", "Has my card {} been charged?",
)  # fmt: skip
#: Maps the country codes of IBANs to templates (`generation.from_template`) for the part after the check digits.
_IBANS: Final = {
    "AD": "{d:8}{A:12}", "AE": "{d:19}", "AL": "{d:8}{A:16}", "AT": "{d:16}", "AZ": "{L:4}{A:20}", "BA": "{d:16}",
    "BE": "{d:12}", "BG": "{L:4}{d:6}{A:8}", "BH": "{L:4}{A:14}", "BR": "{d:23}{L:1}{A:1}", "BY": "{A:4}{d:4}{A:16}",
    "CH": "{d:5}{A:12}", "CR": "{d:18}", "CY": "{d:8}{A:16}", "CZ": "{d:20}", "DE": "{d:18}", "DK": "{d:14}",
    "DO": "{A:4}{d:20}", "EE": "{d:16}", "EG": "{d:25}", "ES": "{d:20}", "FI": "{d:14}", "FO": "{d:14}",
    "FR": "{d:10}{A:11}{d:2}", "GB": "{L:4}{d:14}", "GE": "{L:2}{d:16}", "GI": "{L:4}{A:15}", "GL": "{d:14}",
    "GR": "{d:7}{A:16}", "GT": "{A:4}{A:20}", "HR": "{d:17}", "HU": "{d:24}", "IE": "{L:4}{d:14}", "IL": "{d:19}",
    "IQ": "{L:4}{d:15}", "IS": "{d:22}", "IT": "{L:1}{d:10}{A:12}", "JO": "{L:4}{d:4}{A:18}", "KW": "{L:4}{A:22}",
    "KZ": "{d:3}{A:13}", "LB": "{d:4}{A:20}", "LC": "{L:4}{A:24}", "LI": "{d:5}{A:12}", "LT": "{d:16}",
    "LU": "{d:3}{A:13}", "LV": "{L:4}{A:13}", "LY": "{d:21}", "MC": "{d:10}{A:11}{d:2}", "MD": "{A:2}{A:18}",
    "ME": "{d:18}", "MK": "{d:3}{A:10}{d:2}", "MR": "{d:23}", "MT": "{L:4}{d:5}{A:18}", "MU": "{L:4}{d:19}{L:3}",
    "NL": "{L:4}{d:10}", "NO": "{d:11}", "PK": "{L:4}{A:16}", "PL": "{d:24}", "PS": "{L:4}{A:21}", "PT": "{d:21}",
    "QA": "{L:4}{A:21}", "RO": "{L:4}{A:16}", "RS": "{d:18}", "SA": "{d:2}{A:18}", "SC": "{L:4}{d:20}{L:3}",
    "SD": "{d:14}", "SE": "{d:20}", "SI": "{d:15}", "SK": "{d:20}", "SM": "{L:1}{d:10}{A:12}", "ST": "{d:21}",
    "SV": "{L:4}{d:20}", "TL": "{d:19}", "TN": "{d:20}", "TR": "{d:6}{A:16}", "UA": "{d:6}{A:19}", "VA": "{d:18}",
    "VG": "{L:4}{d:16}", "XK": "{d:16}",
}  # fmt: skip
_IBAN_CONTEXTS: Final = ("my IBAN is {}", "{}", "transfer it to {} today", "Konto: {},")
_NETWORK_AND_WALLETS: Final = {
    "IPv4": ("ip_address", "203.0.113.{1:2}"), "IPv4 net": ("ip_address", "10.{1:2}.0.0/16"),
    "IPv6": ("ip_address", "2001:db8:85a3::8a2e:370:{h:4}"), "IPv6, full": ("ip_address", "2001:0db8:85a3:0000:0000:8a2e:0370:{h:4}"),
    "IPv6, mapped": ("ip_address", "::ffff:192.0.2.{1:2}"), "IPv6, zone": ("ip_address", "fe80::{h:4}%eth0"),
    "MAC": ("mac_address", "00:1B:44:11:{X:2}:{X:2}"), "MAC, hyphens": ("mac_address", "00-1B-44-11-{X:2}-{X:2}"),
    "MAC, dots": ("mac_address", "001b.4411.{h:4}"), "e-mail": ("email", "{l:6}.{l:5}@example.com"),
    "e-mail, plus": ("email", "{l:6}+{l:3}@mail.example.co.uk"), "e-mail, long end": ("email", "{l:6}@example.photography"),
    "URL": ("url", "https://www.{l:8}.com/{l:5}"), "URL, http": ("url", "http://{l:8}.org/"), "URL, bare": ("url", "www.{l:8}.net"),
    "domain": ("url", "{l:8}.com"), "domain, path": ("url", "{l:8}.io/{l:5}"), "domain, country": ("url", "{l:8}.co.uk"),
    "Bitcoin": ("crypto_wallet", "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ"), "Ethereum": ("crypto_wallet", "0x{h:40}"),
    "SWIFT": ("swift_bic", "DEUTDEFF{d:3}"),
}  # fmt: skip


def _phone(notation: str) -> ValueGenerator:
    def value(rnd: Random) -> str:
        return "".join(
            str(rnd.randint(2, 9)) if part == "%" else str(rnd.randint(0, 9)) if part == "#" else part
            for part in notation
        )

    return value


def _date(notation: str) -> ValueGenerator:
    def value(rnd: Random) -> str:
        # Days 4 to 20, so that the suffix in `{day}th` is right.
        year, month, day = rnd.randint(1940, 2029), rnd.randint(1, 12), rnd.randint(4, 20)
        month_name = _MONTHS[month - 1]
        return notation.format(
            year=year,
            year2=f"{year % 100:02}",
            month=month,
            day=day,
            month_name=month_name,
            month3=month_name[:3],
            MONTH3=month_name[:3].upper(),
        )

    return value


def _card(prefix: str, length: int, separator: str) -> ValueGenerator:
    def value(rnd: Random) -> str:
        digits = prefix + "".join(rnd.choices("0123456789", k=length - len(prefix) - 1))
        total = 0
        for place, digit in enumerate(reversed(digits)):
            doubled = int(digit) * (2 - place % 2)
            total += doubled - 9 if doubled > 9 else doubled
        digits += str(-total % 10)
        if not separator:
            return digits
        if length in {14, 15}:
            return separator.join((digits[:4], digits[4:10], digits[10:]))
        return separator.join(digits[start : start + 4] for start in range(0, length, 4))

    return value


def _iban(country: str, template: str, *, spaced: bool) -> ValueGenerator:
    def value(rnd: Random) -> str:
        account = from_template(template)(rnd)
        number = "".join(str(int(item, 36)) for item in f"{account}{country}00")
        iban = f"{country}{98 - int(number) % 97:02}{account}"
        return " ".join(iban[start : start + 4] for start in range(0, len(iban), 4)) if spaced else iban

    return value


def formats() -> Iterator[Format]:
    for country, notations in _PHONES.items():
        for notation in notations:
            yield Format("phones", f"{country}, {notation}", _phone(notation), frozenset({"phone"}), _PHONE_CONTEXTS)
    for notation in _DATES:
        yield Format("dates", notation, _date(notation), frozenset({"date", "date_of_birth"}), _DATE_CONTEXTS)
    for name, (prefix, length) in _CARDS.items():
        for separator in ("", " ", "-"):
            separator_name = {"": "digits", " ": "blanks", "-": "hyphens"}[separator]
            value = _card(prefix, length, separator)
            yield Format("cards", f"{name}, {separator_name}", value, frozenset({"credit_card"}), _CARD_CONTEXTS)
    for country, template in _IBANS.items():
        for spaced in (False, True):
            value = _iban(country, template, spaced=spaced)
            yield Format(
                "accounts", f"IBAN, {country}{', blanks' if spaced else ''}", value, frozenset({"iban"}), _IBAN_CONTEXTS
            )
    for name, (entity_type, template) in _NETWORK_AND_WALLETS.items():
        contexts = (
            "see {} for it",
            "{}",
            "the address is {}",
            f"my {entity_type.replace('_', ' ')} is {{}}",
        )
        if name == "SWIFT":
            contexts = ("SWIFT: {}", "BIC {}", "the SWIFT code is {}")
        yield Format("network", name, from_template(template), frozenset({entity_type}), contexts)
