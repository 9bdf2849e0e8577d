"""Cards, accounts, wallets, securities and companies."""

from functools import partial

from gatehouse.detection.catalog.shapes import alone, entry, shape, word, words
from gatehouse.detection.validators import financial as check
from gatehouse.detection.validators import proves, refutes, wallets

financial = partial(entry, "financial", "redact")

PATTERNS = (
    financial(
        "credit_card",
        "Payment card number",
        word(
            r"[1-9](?:[ \-]?\d){12,18}",
            0.3,
            lambda text: check.card(text) and (check.distinctive_card(text) or None),
        ),
        # In groups of four, a number with the right check digit and beginning is a card's, whatever stands around it.
        word(r"[2-6]\d{3}(?:[ \-]\d{4}){3}", 0.7, refutes(check.card)),
        word(r"[56]\d{11}", 0.3, refutes(check.card), needs_context=True),
        alone(r"[156]\d{11,14}", 0.55, refutes(check.card)),
        context=words(
            "card, credit, credit card, debit, visa, mastercard, amex, american express, discover, maestro, "
            "diners, jcb, cc, kreditkarte, carte, tarjeta, payment, pan"
        ),
        examples=("4242 4242 4242 4242", "card 371449635398431", "my credit card: 122000000000003"),
        counterexamples=("4012-8888-8888-1882", "1748503543012", "0000000000000000"),
    ),
    financial(
        "iban",
        "IBAN",
        word(r"[A-Z]{2}\d\d(?:[ \-]?[A-Z0-9]{4}){3,7}", 0.9, proves(check.iban)),
        word(r"[A-Z]{2}\d\d(?:[ \-]?[A-Z0-9]{4}){2,7}[ \-]?[A-Z0-9]{1,3}", 0.9, proves(check.iban)),
        word(r"[A-Za-z]{2}\d\d[A-Za-z0-9]{11,29}", 0.9, proves(check.iban)),
        context=words("iban, account, konto, bank"),
        examples=("DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"),
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
        word(r"\d{4}-\d{4}-\d", 0.7, refutes(check.aba_routing)),
        alone(r"\d{9}", 0.55, refutes(check.aba_routing)),
        context=words("routing, routing number, aba, rtn, bank, transit"),
        examples=("routing number is: 021000021", "0711-0130-7"),
        counterexamples=("routing 121000359", "1234-0000-0", "order 021000021"),
    ),
    financial(
        "bank_account",
        "Bank account number",
        word(r"\d{8,17}", 0.2, needs_context=True),
        context=words(
            "bank account, account number, account no, acct, checking account, savings account, kontonummer, "
            "numéro de compte, número de cuenta, a/c, bank account number"
        ),
        examples=("my bank account number is 912803456",),
        counterexamples=("912803456", "account manager 12"),
    ),
    financial(
        "bank_code",
        "National bank code or account",
        word(r"\d{18}", 0.4, refutes(check.clabe)),
        word(r"[A-Z]{4}0[A-Z0-9]{6}", 0.55),
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
        word(r"DE ?\d{3} ?\d{3} ?\d{3}", 0.6, refutes(check.de_vat), ignore_case=True),
        word(r"ATU\d{8}|NL\d{9}B\d{2}|BE ?0\d{3}\.?\d{3}\.?\d{3}|PL\d{10}|SE\d{10}01", 0.7),
        word(r"FR ?[A-HJ-NP-Z0-9]{2} ?\d{3} ?\d{3} ?\d{3}", 0.6, refutes(check.fr_vat)),
        word(
            r"(?:IE\d{7}[A-W][A-I]?|DK\d{8}|FI\d{8}|LU\d{8}|PT\d{9}|ES[A-Z0-9]\d{7}[A-Z0-9]|EL\d{9}|CZ\d{8,10}|GB\d{9})",
            0.4,
        ),
        word(r"\d{2}[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]", 0.8, refutes(check.gstin), ignore_case=True),
        word(r"\d{11}", 0.3, refutes(check.it_vat), needs_context=True),
        alone(r"\d{11}", 0.55, refutes(check.it_vat)),
        context=words("vat, ust, ust-idnr, ustid, umsatzsteuer, tva, iva, partita iva, p.iva, gstin, gst, btw"),
        examples=("USt-IdNr. DE 136 695 976", "27ABCDE1234F1Z5", "P.IVA 01333550323"),
        counterexamples=("AT123456789", "00ABCDE1234F1Z5", "DE12345"),
    ),
    financial(
        "company_number",
        "Company registration number",
        word(r"\d{2} \d{3} \d{3} \d{3}", 0.7, proves(check.abn)),
        word(r"\d{11}", 0.3, refutes(check.abn), needs_context=True),
        alone(r"\d{11}", 0.6, refutes(check.abn)),
        word(r"\d{3} \d{3} \d{3}", 0.55, refutes(check.acn)),
        alone(r"\d{9}", 0.55, refutes(check.acn)),
        word(r"\d{3}-\d{2}-\d{5}", 0.6, refutes(check.kr_business)),
        alone(r"\d{10}", 0.55, refutes(check.kr_business)),
        word(r"\d{6}-\d{4}", 0.6, refutes(check.se_organization)),
        alone(r"\d{10}", 0.55, refutes(check.se_organization)),
        word(r"HR[AB] ?\d{1,6}", 0.7, ignore_case=True),
        word(r"(?:[TSR]\d{2}[A-Z]{2}\d{4}[A-Z]|(?:19|20)\d{7}[A-Z])", 0.6),
        word(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}", 0.8, proves(check.br_cnpj)),
        word(r"[0-9A-Z]{18}\d{2}", 0.3, lambda text: check.lei(text) or False, needs_context=True),
        context=words(
            "abn, acn, uen, lei, handelsregister, company number, organisationsnummer, cnpj, business registration"
        ),
        examples=("ABN 51 824 753 556", "HRB 123456", "104-86-56659", "556703-7485", "T16RF0037C"),
        counterexamples=("51 824 753 557", "HRC 12345", "104-86-56658", "556703-7484"),
    ),
    financial(
        "card_security_code",
        "Card security code",
        shape(
            r"\b(?:cvv2?|security code|cvc2?|verification (?:code|value)|csc)\W{0,3}(?:is|code|number)?\W{0,3}"
            r"(?P<value>\d{3,4})\b",
            0.8,
            ignore_case=True,
        ),
        examples=("CVV: 123", "the security code is 4321"),
        counterexamples=("code 123", "cvv missing"),
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
        word(r"[A-Z]{2}[A-Z0-9]{9}\d", 0.6, proves(check.isin)),
        word(r"[0-9]{3}[0-9A-Z]{5}\d", 0.3, refutes(check.cusip), needs_context=True),
        context=words("isin, cusip, wkn, sedol"),
        examples=("US0378331005", "CUSIP 037833100"),
        counterexamples=("US0378331006", "037833100"),
    ),
)
