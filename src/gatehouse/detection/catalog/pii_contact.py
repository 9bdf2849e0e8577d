"""Patterns for contact data and locations of persons: e-mail, phone, parts of addresses, vehicle plates, devices."""

from functools import partial

from gatehouse.detection.catalog.shapes import GUESS_SCORE, alone, entry, shape, word, words
from gatehouse.detection.validators import proves, refutes
from gatehouse.detection.validators.contact import email_domain, german_street, international_phone, national_phone
from gatehouse.detection.validators.world import imei

pii = partial(entry, "pii", "redact")
contact = partial(entry, "pii", "log_only")

_EXTENSION = r"(?: ?x\d{1,5})?"
_US_STATES = (
    r"(?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]"
    r"|W[AIVY])"
)
_UK_POSTCODE = (
    r"GIR ?0AA|(?:[A-PR-UWYZ](?:\d{1,2}|[A-HK-Y]\d{1,2}|\d[A-HJKSTUW]|[A-HK-Y]\d[ABEHMNPRV-Y]))"
    r" ?\d[ABD-HJLNP-UW-Z]{2}"
)
_STREET = r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Terrace|Ter|Parkway|Pkwy|Highway|Hwy|Crescent)"
#: Words for streets that also have other meanings, as in `16 Google Drive links`, `3 Click Close` and
#: `2023 Supreme Court`.
_STREET_OR_WORD = r"(?:Drive|Dr|Court|Ct|Square|Sq|Place|Pl|Close|Way)"
_HOUSE = r"\d{1,5}[A-Za-z]?(?: [NSEW]\.?)?(?: [A-Z][\w'.\-]{1,16}){1,3}"
_UNIT = r"(?:,? (?:Apt|Suite|Ste|Unit|#)\.? ?\w{1,6})"
_UK_PLATE = r"[A-HJ-PR-Y]{2}(?:0[1-9]|[12567]\d) ?[A-HJ-PR-Z]{3}"
_TURKISH_PLATE = r"(?:0[1-9]|[1-7]\d|8[01]) [A-Z]{1,3} \d{2,4}"
_INDIAN_STATES = (
    r"(?:A[NPRS]|B[HR]|C[GH]|D[DLN]|G[AJ]|H[PR]|J[HK]|K[AL]|L[AD]|M[HLNPZ]|N[LAE]|O[DR]|P[BY]|RJ|SK|T[NRSG]|U[KP]|WB)"
)
#: Signs for minutes and seconds. Seconds may be written as two minute signs, or as two double quotes, as in a quoted
#: field of CSV.
_MINUTES, _SECONDS = "['\u2032]", "(?:\"{1,2}|[\u2033]|['\u2032]{2})"
_DEGREES = rf"\d{{1,3}}°\s?\d{{1,2}}{_MINUTES}\s?\d{{1,2}}(?:\.\d{{1,4}})?{_SECONDS}?\s?"

PATTERNS = (
    contact(
        "email",
        "E-mail address",
        word(
            r"[A-Za-z0-9][\w.%+'\-]{0,47}@[A-Za-z0-9][A-Za-z0-9\-]{0,26}\.(?:[A-Za-z0-9\-]{1,16}\.){0,2}"
            r"(?:[A-Za-z]{2,16}|xn--[a-z0-9\-]{1,12})",
            0.9,
            refutes(email_domain),
        ),
        examples=("write to jane.doe+list@mail.example.co.uk now", "user@xn--80ak6aa92e.com"),
        counterexamples=("my email is info@presidio.", "git@", "pkg@1.2.3", "icon@2x.png"),
    ),
    contact(
        "phone",
        "Phone number",
        shape(
            r"(?:^|[^\w+.])(?P<value>(?:\+|\b00)[1-9]\d{0,2}[ .\-]?(?:\(0?\d{1,4}\)[ .\-]?)?\d(?:[ .\-/]?\d){5,13}"
            rf"{_EXTENSION})\b",
            0.75,
            refutes(international_phone),
        ),
        shape(rf"\(0?\d{{2,4}}\)[ .\-]?\d{{2,4}}[ .\-]?\d{{3,4}}(?:[ .\-]\d{{2,4}})?{_EXTENSION}\b", 0.6),
        word(rf"(?:1[ .\-])?[2-9]\d{{2}}[.\-][2-9]\d{{2}}[.\-]\d{{4}}{_EXTENSION}", 0.6),
        word(r"0\d{1,4}(?:[ .\-/]\d{2,4}){2,5}|0\d{2,4}[ \-/]\d{4,8}", GUESS_SCORE, refutes(national_phone)),
        word(r"0[ \-]?(?:\(\d{3}\)|\d{3})[ \-]\d{3}[ \-]?\d{2}[ \-]?\d{2}", 0.6),
        word(r"0[2-9]\d{9}", GUESS_SCORE),
        word(rf"\d{{2,4}}(?:[ .\-]\d{{2,4}}){{1,4}}{_EXTENSION}", 0.2, refutes(national_phone)),
        word(r"0?[2-9]\d{6,10}", 0.2, refutes(national_phone)),
        word(r"[2-9]\d{1,4} \d{5,8}", 0.2, refutes(national_phone), needs_context=True),
        alone(r"0[1-9]\d{8,10}|[2-5]\d{9}", GUESS_SCORE),
        alone(r"[2-9]\d{1,2}(?:[ .\-]\d{2,4}){2,3}|[2-9]\d{1,2} \d{4,6}", GUESS_SCORE, refutes(national_phone)),
        context=words(
            "phone, phone number, telephone, tel, mobile, cell, call, fax, whatsapp, sms, dial, hotline, telefon, "
            "handy, mobil, cep, telepono, téléphone, portable, teléfono, móvil, telefono, cellulare, messages to, "
            "reach me at, registered number, my registered"
        ),
        examples=("+44 20 7946 0958", "(415) 555-0132", "call 0171 2345678", "phone: 4155550132", "+905321234567"),
        counterexamples=("version 1.2.3.4", "order 12345678901", "2024-03-15"),
    ),
    contact(
        "postal_code",
        "Postal code",
        word(_UK_POSTCODE, 0.5),
        word(r"\d{5}(?:-\d{4})?", 0.2, needs_context=True),
        word(r"[ABCEGHJ-NPRSTVXY]\d[ABCEGHJ-NPRSTV-Z] ?\d[ABCEGHJ-NPRSTV-Z]\d", 0.5),
        shape(rf"\b{_US_STATES}\s{{1,2}}(?P<value>\d{{5}}(?:-\d{{4}})?)\b", 0.6),
        context=words(
            "zip, zip code, zipcode, postal code, postcode, postal, plz, postleitzahl, code postal, wohnort, "
            "wohnanschrift, "
            "postanschrift, lieferadresse, rechnungsadresse, post code, código postal, cap:"
        ),
        examples=("SW1A 1AA", "PLZ: 10115", "Springfield, IL 62704"),
        counterexamples=("QA1 1AA", "port 10115"),
    ),
    pii(
        "street_address",
        "Street address",
        shape(rf"\b{_HOUSE} {_STREET}\b\.?{_UNIT}?", 0.7),
        shape(rf"\b{_HOUSE} {_STREET_OR_WORD}\b\.?{_UNIT}?", 0.4, needs_context=True),
        shape(rf"\b{_HOUSE} {_STREET_OR_WORD}\b\.?{_UNIT}", 0.7),
        shape(rf"\b(?P<value>{_HOUSE} {_STREET_OR_WORD}\b\.?)(?:,\s[A-Z0-9]|\s{{0,2}}[\r\n]|$)", 0.7),
        shape(
            r"(?P<value>[A-ZÄÖÜ][\wäöüß\-]{2,24}(?:straße|strasse|str\.|gasse|platz|allee|weg) \d{1,4} ?[a-z]?)"
            r"(?:[^\w]|$)",
            0.7,
            refutes(german_street),
        ),
        shape(r"\bP\.? ?O\.? Box (?P<value>\d{1,7})\b", 0.7, ignore_case=True),
        context=words("address, lives, living, resides, ship to, deliver to, moved to, anschrift, wohnhaft"),
        examples=("742 Evergreen Terrace, Apt 3", "Hauptstraße 12", "PO Box 1234"),
        counterexamples=(
            *("5 Things To Do", "the street is long", "16 Google Drive links", "in 2023 Supreme Court rules changed"),
            *("Step 3 Click Close to end", "Stellplatz 10", "Speicherplatz 500 GB", "der Rückweg 30 Minuten"),
        ),
    ),
    pii(
        "vehicle_plate",
        "Vehicle registration",
        word(r"[A-ZÄÖÜ]{1,3}[ \-][A-ZÄÖÜ]{1,2}[ \-][1-9]\d{0,3}[EH]?", 0.3),
        alone(r"[A-ZÄÖÜ]{1,3}[ \-][A-ZÄÖÜ]{1,2}[ \-][1-9]\d{0,3}[EH]?", 0.6),
        word(_UK_PLATE, GUESS_SCORE),
        # British plates with hyphens or from before 2001, other forms of Indian and Turkish plates, and embassy plates.
        word(
            r"[A-HJ-PR-Y]{2}(?:0[1-9]|[1-7]\d)-[A-HJ-PR-Z]{3}|[A-HJ-NPR-TV-Y]\d{1,3}[ \-]?[A-HJ-PR-Y][A-HJ-PR-Z]{2}"
            r"|[A-HJ-PR-Z]{3}[ \-]?\d{1,3}[A-HJ-NPR-TV-Y]|(?:0[1-9]|[1-7]\d|8[01])-?[A-Z]{1,3}-?\d{2,4}"
            r"|\d{2}[A-Z]\d{6}[A-Z]|\d{1,3}(?:CD|CC|UN)\d{1,4}",
            0.2,
            needs_context=True,
        ),
        word(r"2[1-9] ?BH ?\d{4} ?[A-HJ-NP-Z]{1,2}", 0.6),
        alone(_UK_PLATE, 0.6, ignore_case=True),
        word(_TURKISH_PLATE, 0.3),
        alone(_TURKISH_PLATE, 0.6),
        word(rf"{_INDIAN_STATES}[ \-]?\d{{1,2}}[ \-]?[A-Z]{{1,3}}[ \-]?\d{{4}}", 0.6),
        word(r"[A-Z]{3}-\d{3}[A-Z]{2}", GUESS_SCORE),
        alone(r"[A-Z]{3}[ \-]?\d{3}[A-Z]{2}", 0.6),
        context=words(
            "plate, number plate, license plate, licence plate, kennzeichen, fahrzeug, vehicle, registration, plaka, "
            "targa, immatriculation, car, reg, kfz, kfz-kennzeichen, nummernschild, zulassung, rto, vrn, v5c, "
            "matrícula, vehicle registration"
        ),
        examples=("Kennzeichen: HH-AB-1234", "plate AB51 ABC", "KA53ME3456", "ABJ-123XY"),
        counterexamples=("B 1234", "00 ABC 123", "IB51 ABC", "I am 25", "the 123rd"),
    ),
    pii(
        "device_id",
        "Device identifier",
        word(r"\d{15}", 0.3, refutes(imei), needs_context=True),
        word(r"\d{2}-\d{6}-\d{6}-\d", 0.6, proves(imei)),
        word(r"89\d{17,18}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", 0.2, needs_context=True),
        context=words("imei, iccid, idfa, gaid, advertising id, android id, device id, sim card, sim number, udid"),
        examples=("IMEI 490154203237518", "35-209900-176148-1", "ICCID 8944200011112222333"),
        counterexamples=("490154203237518", "IMEI 490154203237519"),
    ),
    pii(
        "geo_coordinates",
        "Geographic position",
        shape(
            r"(?:^|[^\d.])(?P<value>[+\-]?(?:[1-8]?\d|90)\.\d{5,15}, ?[+\-]?(?:1[0-7]\d|[1-9]?\d|180)\.\d{5,15})\b",
            0.3,
            needs_context=True,
        ),
        shape(rf"{_DEGREES}[NS],?\s{{0,2}}{_DEGREES}[EW]", 0.8),
        context=words("latitude, longitude, lat, lng, lon, gps, coordinates, coords, position, location, geo"),
        examples=("GPS: 52.520008, 13.404954", "48°51'24\"N 2°21'03\"E"),
        # Coordinates with four decimals are ignored. They are accurate to only ten metres, and are usual in requests
        # to weather services.
        counterexamples=("[0.52520, 0.13404]", "lat 91.12345, 13.40495", "coordinates: 52.5200, 13.4049"),
    ),
)
