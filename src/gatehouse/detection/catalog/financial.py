"""Cards, accounts, wallets, securities and companies."""

from functools import partial
from typing import Final

from gatehouse.detection.catalog.shapes import GUESS_SCORE, alone, among_words, entry, isolated, shape, word, words
from gatehouse.detection.validators import both, proves, refutes, wallets
from gatehouse.detection.validators import financial as check

#: Groups of digits on cards, in this order: Visa, Mastercard and most other cards; American Express; Diners Club; cards
#: with 19 digits in five groups; cards with 19 digits in groups of 6 and 13.
_CARD_GROUPS: Final = (
    (r"[2-6]\d{3}", r"\d{4}", r"\d{4}", r"\d{4}"),
    (r"(?:3[47]\d{2}|1800|2131)", r"\d{6}", r"\d{5}"),
    (r"3[0689]\d{2}", r"\d{6}", r"\d{4}"),
    (r"[2-6]\d{3}", r"\d{4}", r"\d{4}", r"\d{4}", r"\d{3}"),
    (r"[2-6]\d{5}", r"\d{13}"),
)
#: Separators between the groups in addition to blank and hyphen. Each has a regex and its characters, for a character
#: class.
_RARE_SEPARATORS: Final = (
    (" {2,3}", " "),
    (r"\t", r"\t"),
    (" - ", r" \-"),
    ("/", "/"),
    (",", ","),
    (", ", ", "),
    ("_", "_"),
    (r"\.", "."),
)

financial = partial(entry, "financial", "redact")

_INDIAN_BANKS: Final = (
    "AIRP|AUBL|BARB|BDBL|BKID|CBIN|CITI|CNRB|CSBK|DBSS|DLXB|ESFB|FDRL|FINO|HDFC|HSBC|IBKL|ICIC|IDFB|IDIB|INDB|IOBA|JAKA|"
    "KARB|KKBK|KVBL|MAHB|NSPB|PSIB|PUNB|PYTM|RATN|SBIN|SCBL|SIBL|TMBL|UBIN|UCBA|UJVN|UTIB|YESB"
)

PATTERNS = (
    financial(
        "credit_card",
        "Payment card number",
        word(r"[1-9]\d{12,18}", 0.3, check.likely_card),
        # If the digits are grouped as on a card, the check digit and the prefix are enough evidence without context.
        *(word(r"[ \-]".join(groups), 0.7, refutes(check.card)) for groups in _CARD_GROUPS),
        # If the digits are grouped in another way, the number must not be part of a longer row of numbers, or it must
        # have a context word.
        isolated(r"[2-6]\d{1,5}(?:[ \-]\d{2,6}){2,6}", r" \-", 0.3, check.distinctive_card),
        *(
            word(rf"[1-9](?:[ \-]?\d){{{length - 1}}}", 0.3, check.likely_card, needs_context=True)
            for length in range(13, 20)
        ),
        *(
            isolated(separator.join(groups), characters, 0.7, refutes(check.card))
            for groups in _CARD_GROUPS[:3]
            for separator, characters in _RARE_SEPARATORS
        ),
        *(
            word(separator.join(groups), 0.3, refutes(check.card), needs_context=True)
            for groups in _CARD_GROUPS[:3]
            for separator, _ in _RARE_SEPARATORS
        ),
        word(r"[56]\d{11}|[56]\d{3}[ \-]\d{4}[ \-]\d{4}", 0.3, refutes(check.card), needs_context=True),
        word(r"0604[ \-]?\d{4}[ \-]?\d{4}", 0.3, refutes(check.card), needs_context=True),
        word(r"9792[ \-]\d{4}[ \-]\d{4}[ \-]\d{4}", 0.7, refutes(check.card)),
        alone(r"[156]\d{11,14}", GUESS_SCORE, refutes(check.card)),
        context=words(
            "card, credit, credit card, debit, visa, mastercard, amex, american express, discover, maestro, "
            "diners, jcb, cc, kreditkarte, carte, tarjeta, payment, pan"
        ),
        examples=(
            "4242 4242 4242 4242",
            "card 371449635398431",
            "my credit card: 122000000000003",
            "charge 4242424242424242 12/27",
            "amex 3782 822463 10005 12/27",
            "4242.4242.4242.4242",
            "scan_4242424242424242.pdf",
            "card 42 4242424242 424242 12/27",
        ),
        counterexamples=(
            "4012-8888-8888-1882",
            "1748503543012",
            "0000000000000000",
            "id 4242424242424242428",
            "12,4242,4242,4242,4242,12",
            "1 42 4242424242 424242 12",
        ),
    ),
    financial(
        "iban",
        "IBAN",
        *(
            word(rf"[A-Z]{{2}}\d\d(?:[ \-]?[A-Z0-9]{{4}}){{{count}}}{rest}", 0.9, proves(check.iban))
            for count in range(2, 8)
            for rest in ("", r"[ \-]?[A-Z0-9]{1,3}")
            if count > 2 or rest
        ),
        word(r"[A-Za-z]{2}\d\d[A-Za-z0-9]{11,29}", 0.9, proves(check.iban)),
        context=words("iban, account, konto, bank"),
        examples=(
            "DE89 3704 0044 0532 0130 00",
            "GB29NWBK60161331926819",
            "AT61 1904 3002 3457 3201 2026",
            "DE89370400440532013000 EUR",
        ),
        counterexamples=("DE89 3704 0044 0532 0130 01", "XX89370400440532013000"),
    ),
    financial(
        "swift_bic",
        "SWIFT code",
        word(r"[A-Z]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?", 0.3, refutes(check.swift), needs_context=True),
        context=words("swift, bic, swift code, bank identifier"),
        examples=("BIC: DEUTDEFF500", "SWIFT code NEDSZAJJ"),
        counterexamples=("DEUTDEFF", "SWIFT LANGUAGES"),
    ),
    financial(
        "us_routing_number",
        "US bank routing number",
        word(r"\d{9}", 0.3, refutes(check.aba_routing), needs_context=True),
        isolated(r"\d{4}-\d{4}-\d", r" \-", 0.7, refutes(check.aba_routing)),
        alone(r"\d{9}", GUESS_SCORE, refutes(check.aba_routing)),
        context=words("routing, routing number, aba, rtn, bank code, bank routing, transit number"),
        examples=("routing number is: 021000021", "0711-0130-7"),
        counterexamples=("routing 121000359", "1234-0000-0", "order 021000021"),
    ),
    financial(
        "bank_account",
        "Bank account number",
        word(r"\d{8,17}", 0.2, needs_context=True),
        context=words(
            "bank account, account number, account no, acct, checking account, savings account, kontonummer, "
            "numéro de compte, número de cuenta, a/c, bank account number, account#, acct#, account #, "
            "numero di conto, rekening"
        ),
        examples=("my bank account number is 912803456",),
        counterexamples=("912803456", "account manager 12"),
    ),
    financial(
        "bank_code",
        "National bank code or account",
        word(r"\d{18}", 0.4, refutes(check.clabe)),
        word(rf"(?:{_INDIAN_BANKS})0[A-Z0-9]{{6}}", 0.6),
        word(r"[A-Z]{4}0[A-Z0-9]{6}", 0.3, needs_context=True),
        word(r"\d{2}[- ]\d{2}[- ]\d{2}", 0.3, needs_context=True),
        word(r"\d{3}-\d{3}", 0.3, needs_context=True),
        context=words("sort code, clabe, ifsc, bsb, bankleitzahl, blz, branch code"),
        examples=("sort code 20-00-00", "IFSC HDFC0001234", "CLABE 032180000118359719"),
        counterexamples=("20-00-00", "032180000118359718"),
    ),
    financial(
        "crypto_wallet",
        "Cryptocurrency address",
        word(r"[13LDMTr][1-9A-HJ-NP-Za-km-z]{24,34}", 0.9, proves(wallets.base58)),
        word(r"(?:bc|tb|ltc)1[02-9ac-hj-np-z]{25,87}", 0.9, proves(wallets.bech32), ignore_case=True),
        word(r"0x[0-9a-fA-F]{40}", 0.7),
        context=words("wallet, bitcoin, btc, ethereum, eth, address, crypto"),
        examples=("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
        counterexamples=("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ2", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"),
    ),
    financial(
        "vat_id",
        "VAT or goods and services tax number",
        word(r"DE\d{9}|DE \d{3} \d{3} \d{3}", 0.6, refutes(check.de_vat)),
        word(r"DE[ .\-]?\d{3}[.\-]\d{3}[.\-]\d{3}", 0.6, refutes(check.de_vat)),
        # `de` in lower case is also a word: `de 150 000 000 euros`.
        word(r"de ?\d{3} ?\d{3} ?\d{3}", 0.3, refutes(check.de_vat), needs_context=True, ignore_case=True),
        alone(r"de ?\d{3} ?\d{3} ?\d{3}", 0.6, refutes(check.de_vat), ignore_case=True),
        word(r"ATU\d{8}|NL\d{9}B\d{2}|BE ?0\d{3}\.?\d{3}\.?\d{3}|PL\d{10}|SE\d{10}01", 0.7),
        word(r"FR ?[A-HJ-NP-Z0-9]{2} ?\d{3} ?\d{3} ?\d{3}", 0.6, refutes(check.fr_vat)),
        word(
            r"(?:IE\d{7}[A-W][A-I]?|DK\d{8}|FI\d{8}|LU\d{8}|PT\d{9}|ES[A-Z0-9]\d{7}[A-Z0-9]|EL\d{9}|CZ\d{8,10}|GB\d{9})",
            0.4,
        ),
        word(r"\d{2}[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]", 0.8, refutes(check.gstin), ignore_case=True),
        word(r"\d{11}", 0.3, refutes(check.it_vat), needs_context=True),
        alone(r"\d{11}", GUESS_SCORE, refutes(check.it_vat)),
        context=words(
            "vat, ust, ust-idnr, ustid, umsatzsteuer, tva, iva, partita iva, p.iva, gstin, gst, btw, ust-id, "
            "umsatzsteuer-id, umsatzsteuer-identifikationsnummer, mehrwertsteuer, goods and services tax"
        ),
        examples=("USt-IdNr. DE 136 695 976", "27ABCDE1234F1Z5", "P.IVA 01333550323"),
        counterexamples=("AT123456789", "00ABCDE1234F1Z5", "DE12345", "le budget est de 150 000 000 euros"),
    ),
    financial(
        "company_number",
        "Company registration number",
        word(r"\d{11}|\d{2} \d{3} \d{3} \d{3}", 0.3, refutes(check.abn), needs_context=True),
        alone(r"\d{11}", GUESS_SCORE, refutes(check.abn)),
        alone(r"\d{2} \d{3} \d{3} \d{3}", 0.6, refutes(check.abn)),
        word(r"\d{3} \d{3} \d{3}", 0.3, refutes(check.acn), needs_context=True),
        alone(r"\d{9}", GUESS_SCORE, refutes(check.acn)),
        alone(r"\d{3} \d{3} \d{3}", 0.6, refutes(check.acn)),
        word(r"\d{3}-\d{2}-\d{5}", 0.6, refutes(check.kr_business)),
        alone(r"\d{10}", GUESS_SCORE, refutes(check.kr_business)),
        # Only numbers of limited companies, because those of other organizations begin like dates and years.
        among_words(r"5[5-9]\d{4}-\d{4}", 0.6, refutes(check.se_organization)),
        word(r"\d{6}-\d{4}", 0.3, refutes(check.se_organization), needs_context=True),
        alone(r"\d{10}", GUESS_SCORE, refutes(check.se_organization)),
        alone(r"\d{6}-\d{4}", 0.6, refutes(check.se_organization)),
        word(r"HR[AB] ?\d{1,6}", 0.7, ignore_case=True),
        word(r"(?:[TSR]\d{2}[A-Z]{2}\d{4}[A-Z]|(?:19|20)\d{7}[A-Z])", 0.6, refutes(check.sg_uen)),
        word(r"\d{8}[A-Z]", 0.3, refutes(check.sg_uen), needs_context=True),
        word(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}", 0.8, proves(check.br_cnpj)),
        word(r"[0-9A-Z]{18}\d{2}", 0.3, lambda text: check.lei(text) or False, needs_context=True),
        context=words(
            "abn, acn, uen, lei, handelsregister, company number, company identity, organisationsnummer, orgnr, "
            "org.nr, cnpj, business registration, australian business number, australian company number, "
            "unique entity number, "
            "acra, amtsgericht, handelsregisternummer, registergericht, business registration number, 사업자등록번호, "
            "사업자번호, brn, företagsnummer, org nr"
        ),
        examples=("ABN 51 824 753 556", "HRB 123456", "104-86-56659", "556703-7485", "T16RF0037C"),
        counterexamples=(
            *("51 824 753 557", "HRC 12345", "104-86-56658", "556703-7484"),
            *("call 512 345 674 now", "invoice 202403-0047"),
        ),
    ),
    financial(
        "card_security_code",
        "Card security code",
        # A hyphen between name and value is not counted, because `CVV-123` is a product name.
        shape(
            r"\b(?:cvv2?|security code|cvc2?|verification (?:code|value)|csc)"
            r"(?:\W{0,3}(?:is|code|number)\W{0,3}|[^\w\-]\W{0,2})?"
            r"(?P<value>\d{3,4})\b",
            0.8,
            ignore_case=True,
        ),
        examples=("CVV: 123", "the security code is 4321"),
        counterexamples=("code 123", "cvv missing", "article CVV-1674"),
    ),
    financial(
        "card_track_data",
        "Magnetic stripe data",
        shape(r"%B[3-6]\d{11,18}\^[A-Z0-9 /.'\-]{2,26}\^\d{7}[0-9A-Z ]{0,60}\??", 0.95),
        shape(r";[3-6]\d{11,18}=\d{7,30}\?", 0.95),
        examples=("%B4111111111111111^DOE/JANE^28031010000000000000?", ";4111111111111111=28031010000000000000?"),
        counterexamples=("%B^DOE/JANE^", ";a=1?"),
    ),
    financial(
        "securities_id",
        "Securities identifier",
        word(r"[A-Z]{2}[A-Z0-9]{9}\d", 0.3, proves(check.isin), needs_context=True),
        word(r"[A-Z]{2}[A-Z0-9]{9}\d", 0.6, both(check.mostly_digits, proves(check.isin))),
        word(r"[0-9]{3}[0-9A-Z]{5}\d", 0.3, refutes(check.cusip), needs_context=True),
        context=words("isin, cusip, wkn, sedol"),
        examples=("US0378331005", "CUSIP 037833100"),
        counterexamples=("US0378331006", "037833100"),
    ),
)
