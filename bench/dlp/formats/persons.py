"""Numbers that countries issue to persons, companies and vehicles, with the words that stand next to them in texts
and on paper forms."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from bench.dlp.formats.generation import Format, ValueGenerator, from_template

from gatehouse.detection.validators import europe, financial, medical, world

#: Ways in which a value and its name are written together.
_CONTEXTS: Final = (
    "{name}: VALUE",
    "my {name} is VALUE",
    "{name} VALUE",
    "The {name} of the customer, VALUE, was checked.",
)


def accepted_by(template: str, check: Callable[[str], bool | None]) -> ValueGenerator:
    """Return a function that makes values of `template` that pass `check`."""
    values = from_template(template)

    def value(rnd: Random) -> str:
        while not check(text := values(rnd)):
            pass
        return text

    return value


def with_birth_date(template: str, check: Callable[[str], bool | None] = lambda _: True) -> ValueGenerator:
    """Return a function that makes values of `template` that pass `check`. `YY`, `MM` and `DD` in the template become a
    date."""
    values = from_template(template)

    def value(rnd: Random) -> str:
        while True:
            date = f"{rnd.randint(50, 99)}", f"{rnd.randint(1, 12):02}", f"{rnd.randint(1, 28):02}"
            text = values(rnd)
            for place, part in zip(("YY", "MM", "DD"), date, strict=True):
                text = text.replace(place, part)
            if check(text):
                return text

    return value


#: Maps the name of a format to the expected entity types, the words that stand next to a value, and the function that
#: makes values.
ISSUED_NUMBERS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], ValueGenerator]]] = {
    "US SSN": (("ssn",), ("SSN", "social security number"), accepted_by("{1:3}-{d:2}-{1:4}", world.us_ssn)),
    "US SSN, two groups": (("ssn",), ("SSN", "social security"), accepted_by("{1:5}-{1:4}", world.us_ssn)),
    "US SSN, digits": (("ssn",), ("SSN", "social security number"), accepted_by("{1:9}", world.us_ssn)),
    "US ITIN": (("us_itin",), ("ITIN", "taxpayer number"), accepted_by("9{d:2}-{d:2}-{d:4}", world.us_itin)),
    "US ITIN, one hyphen": (("us_itin",), ("ITIN", "tax id"), accepted_by("9{d:2}-{d:6}", world.us_itin)),
    "US passport": (("passport",), ("passport", "passport number"), from_template("{1:1}{d:8}")),
    "US passport, new": (("passport",), ("US passport", "passport no"), from_template("{L:1}{d:8}")),
    "US bank account": (
        ("bank_account",),
        ("bank account", "checking account", "account#"),
        from_template("{1:1}{d:9-12}"),
    ),
    "US routing": (
        ("us_routing_number",),
        ("routing number", "ABA"),
        accepted_by("0{d:8}", financial.aba_routing),
    ),
    "US NPI": (("us_npi",), ("NPI", "provider identifier"), accepted_by("1{d:9}", medical.npi)),
    "US MBI": (("us_mbi",), ("Medicare", "MBI"), lambda _: "1EG4-TE5-MK73"),
    "US DEA": (("medical_license",), ("DEA", "DEA certificate"), accepted_by("B{L:1}{d:7}", medical.dea)),
    "UK NHS": (("uk_nhs",), ("NHS number", "health service"), accepted_by("{1:3} {d:3} {d:4}", medical.nhs)),
    "UK NINO": (
        ("uk_nino",),
        ("national insurance", "NI number"),
        lambda rnd: "AB" + from_template("{d:6}")(rnd) + "C",
    ),
    "UK passport": (("passport",), ("passport", "British passport"), from_template("{L:2}{d:7}")),
    "UK driving licence": (("driver_license",), ("driving licence", "DVLA"), lambda _: "MORGA657054SM9IJ"),
    "UK plate": (
        ("vehicle_plate",),
        ("registration", "number plate"),
        lambda rnd: "AB51 " + _random_letters("ABCDEFGH", 3, rnd),
    ),
    "UK plate, hyphen": (
        ("vehicle_plate",),
        ("registration", "car"),
        lambda rnd: "AB51-" + _random_letters("ABCDEFGH", 3, rnd),
    ),
    "UK plate, prefix": (
        ("vehicle_plate",),
        ("registration", "number plate"),
        lambda rnd: f"A{rnd.randint(1, 9)}23 BCD",
    ),
    "UK plate, suffix": (
        ("vehicle_plate",),
        ("registration", "number plate"),
        lambda rnd: f"ABC 1{rnd.randint(1, 9)}3D",
    ),
    "Canada SIN": (
        ("ca_sin",),
        ("SIN number", "social insurance number"),
        accepted_by("1{d:2} {d:3} {d:3}", world.ca_sin),
    ),
    "Spain NIF": (("national_id",), ("DNI", "NIF"), accepted_by("{d:8}{L:1}", europe.es_nif)),
    "Spain NIE": (
        ("national_id",),
        ("NIE", "número de identificación"),
        accepted_by("X{d:7}{L:1}", europe.es_nie),
    ),
    "Spain passport": (("passport",), ("pasaporte", "número de pasaporte"), from_template("{L:3}{d:6}")),
    "Italy fiscal code": (("national_id",), ("codice fiscale",), lambda _: "RSSMRA85T10A562S"),
    "Italy driving licence": (("driver_license",), ("patente", "patente di guida"), from_template("{L:2}{d:7}{L:1}")),
    "Italy driving licence, U1": (("driver_license",), ("patente di guida",), from_template("U1{d:7}{L:1}")),
    "Italy identity card": (("national_id",), ("carta d'identità", "carta di identità"), from_template("{L:2}{d:7}")),
    "Italy identity card, CIE": (
        ("national_id",),
        ("carta d'identità", "carta di identità"),
        from_template("CA{d:5}{L:2}"),
    ),
    "Italy identity card, CIE 2": (("national_id",), ("carta d'identità",), from_template("{d:7}{L:2}")),
    "Italy passport": (("passport",), ("passaporto",), from_template("{L:2}{d:7}")),
    "Italy VAT": (("vat_id",), ("partita IVA", "P.IVA"), accepted_by("0{d:10}", financial.it_vat)),
    "Poland PESEL": (("national_id",), ("PESEL",), with_birth_date("YYMMDD{d:5}", europe.pl_pesel)),
    "Poland NIP": (("tax_id", "vat_id"), ("NIP",), from_template("{1:1}{d:2}-{d:3}-{d:2}-{d:2}")),
    "Finland": (
        ("national_id",),
        ("HETU", "henkilötunnus"),
        with_birth_date("DDMMYY-{d:3}{A:1}", europe.fi_identity_code),
    ),
    "Sweden": (("national_id",), ("personnummer",), with_birth_date("YYMMDD-{d:4}", europe.se_personal)),
    "Sweden, company": (
        ("company_number",),
        ("organisationsnummer", "orgnr"),
        accepted_by("55{1:4}-{d:4}", financial.se_organization),
    ),
    "Norway": (("national_id",), ("fødselsnummer",), with_birth_date("DDMMYY{d:5}", europe.no_birth_number)),
    "Denmark": (("national_id",), ("CPR",), with_birth_date("DDMMYY-{d:4}")),
    "Netherlands": (("national_id",), ("BSN", "burgerservicenummer"), accepted_by("{1:1}{d:8}", europe.nl_bsn)),
    "Belgium": (
        ("national_id",),
        ("rijksregisternummer", "national number"),
        with_birth_date("YY.MM.DD-{d:3}.{d:2}", europe.be_national),
    ),
    "France": (
        ("national_id",),
        ("numéro de sécurité sociale", "NIR"),
        accepted_by("1{d:2}0{1:1}75{d:6}{d:2}", europe.fr_nir),
    ),
    "Switzerland": (("national_id",), ("AHV", "AVS"), accepted_by("756.{d:4}.{d:4}.{d:2}", europe.ch_ahv)),
    "Austria": (
        ("national_id",),
        ("SVNR", "Sozialversicherungsnummer"),
        with_birth_date("{1:1}{d:3} DDMMYY", europe.at_social_security),
    ),
    "Portugal NIF": (("tax_id", "national_id"), ("NIF", "contribuinte"), accepted_by("2{d:8}", europe.pt_nif)),
    "Romania": (("national_id",), ("CNP",), with_birth_date("1YYMMDD{d:6}", europe.ro_cnp)),
    "Croatia": (("national_id",), ("OIB",), accepted_by("{1:1}{d:10}", europe.hr_oib)),
    "Czechia": (("national_id",), ("rodné číslo",), with_birth_date("YYMMDD/{d:4}", europe.cz_birth_number)),
    "Ireland": (("national_id",), ("PPS", "PPSN"), accepted_by("{d:7}{L:1}", europe.ie_pps)),
    "Germany, tax": (
        ("tax_id",),
        ("Steuer-ID", "Steueridentifikationsnummer", "IdNr"),
        accepted_by("{1:1}{d:10}", europe.de_tax_id),
    ),
    "Germany, tax office": (
        ("tax_id",),
        ("Steuernummer", "Finanzamt", "Steuerbescheid"),
        from_template("{1:3}/{d:3}/{d:5}"),
    ),
    "Germany, tax, ELSTER": (("tax_id",), ("Steuernummer", "Finanzamt"), from_template("09{d:11}")),
    "Germany, VAT": (("vat_id",), ("USt-IdNr", "Umsatzsteuer-ID"), accepted_by("DE{1:1}{d:8}", financial.de_vat)),
    "Germany, VAT, dots": (
        ("vat_id",),
        ("USt-IdNr", "USt-ID"),
        accepted_by("DE {1:1}{d:2}.{d:3}.{d:3}", financial.de_vat),
    ),
    "Germany, identity card": (
        ("national_id",),
        ("Personalausweis", "Ausweisnummer", "Personalausweisnummer"),
        accepted_by("L{d:8}", europe.icao_checked),
    ),
    "Germany, old identity card": (("national_id",), ("Personalausweis", "Ausweisnummer"), from_template("T{d:8}")),
    "Germany, passport": (
        ("passport",),
        ("Reisepass", "Reisepassnummer", "Pass-Nr"),
        from_template("C{d:2}X{d:2}T{d:2}"),
    ),
    "Germany, driving licence": (
        ("driver_license",),
        ("Führerschein", "Fahrerlaubnis", "Führerscheinnummer"),
        from_template("{L:2}{d:8}{A:1}"),
    ),
    "Germany, pension": (
        ("national_id",),
        ("Rentenversicherungsnummer", "RVNR"),
        with_birth_date("15DDMMYY{L:1}{d:3}", europe.de_pension),
    ),
    "Germany, health": (
        ("health_insurance_id",),
        ("Krankenversicherungsnummer", "KVNR", "Versichertennummer", "Krankenkasse"),
        accepted_by("{L:1}{d:9}", medical.kvnr),
    ),
    "Germany, doctor": (
        ("practitioner_id",),
        ("LANR", "Arztnummer", "Arzt-Nr"),
        accepted_by("{1:1}{d:8}", medical.lanr),
    ),
    "Germany, practice": (
        ("practitioner_id",),
        ("BSNR", "Betriebsstättennummer"),
        accepted_by("{1:1}{d:8}", medical.bsnr),
    ),
    "Germany, register": (("company_number",), ("Handelsregister", "Amtsgericht"), from_template("HRB {1:1}{d:4}")),
    "Germany, plate": (
        ("vehicle_plate",),
        ("Kennzeichen", "Kfz-Kennzeichen", "Nummernschild"),
        lambda rnd: "M-AB " + str(rnd.randint(100, 9999)),
    ),
    "Germany, postal code": (
        ("postal_code",),
        ("PLZ", "Postleitzahl", "Wohnort"),
        lambda rnd: str(rnd.randint(10115, 99998)),
    ),
    "Singapore NRIC": (("national_id",), ("NRIC", "FIN"), accepted_by("S{d:7}{L:1}", world.sg_nric)),
    "Singapore UEN": (
        ("company_number",),
        ("UEN", "unique entity number"),
        accepted_by("T{d:2}LL{d:4}{L:1}", financial.sg_uen),
    ),
    "Singapore UEN, business": (
        ("company_number",),
        ("UEN", "ACRA"),
        accepted_by("53{d:6}{L:1}", financial.sg_uen),
    ),
    "Australia ABN": (
        ("company_number",),
        ("ABN", "Australian business number"),
        accepted_by("{1:1}{d:1} {d:3} {d:3} {d:3}", financial.abn),
    ),
    "Australia ACN": (
        ("company_number",),
        ("ACN", "Australian company number"),
        accepted_by("{1:1}{d:2} {d:3} {d:3}", financial.acn),
    ),
    "Australia TFN": (
        ("tax_id",),
        ("TFN", "tax file number"),
        accepted_by("{1:1}{d:2} {d:3} {d:3}", world.au_tfn),
    ),
    "Australia Medicare": (
        ("health_insurance_id",),
        ("Medicare", "Medicare number"),
        accepted_by("2{d:3} {d:5} {1:1}", medical.au_medicare),
    ),
    "India PAN": (
        ("tax_id",),
        ("PAN", "permanent account number"),
        lambda rnd: "ABCP" + from_template("{L:1}{d:4}{L:1}")(rnd),
    ),
    "India Aadhaar": (
        ("in_aadhaar",),
        ("Aadhaar", "UIDAI"),
        accepted_by("{1:1}{d:3} {d:4} {d:4}", world.in_aadhaar),
    ),
    "India voter": (("national_id", "voter_id"), ("voter id", "EPIC"), from_template("{L:3}{d:7}")),
    "India passport": (("passport",), ("passport", "Indian passport"), from_template("{L:1}{1:1}{d:1} {d:4}{1:1}")),
    "India GSTIN": (
        ("vat_id",),
        ("GSTIN", "GST number"),
        lambda rnd: "27" + from_template("{L:5}{d:4}{L:1}")(rnd) + "1Z5",
    ),
    "India plate": (
        ("vehicle_plate",),
        ("vehicle", "registration", "RTO"),
        lambda rnd: "KA" + from_template("{d:2}{L:2}{1:4}")(rnd),
    ),
    "India plate, BH": (
        ("vehicle_plate",),
        ("vehicle", "number plate"),
        lambda rnd: "22BH" + from_template("{1:4}")(rnd) + "AA",
    ),
    "India plate, army": (("vehicle_plate",), ("vehicle", "registration"), from_template("0{1:1}D{d:6}{L:1}")),
    "India plate, embassy": (
        ("vehicle_plate",),
        ("vehicle", "plate"),
        lambda rnd: "104CD" + from_template("{1:1}{d:1}")(rnd),
    ),
    "Korea RRN": (("national_id",), ("주민등록번호", "RRN"), with_birth_date("YYMMDD-1{d:6}", world.kr_resident)),
    "Korea FRN": (("national_id",), ("외국인등록번호", "FRN"), with_birth_date("YYMMDD-5{d:6}", world.kr_resident)),
    "Korea BRN": (
        ("company_number",),
        ("사업자등록번호", "business registration number"),
        accepted_by("1{d:2}-{d:2}-{d:5}", financial.kr_business),
    ),
    "Korea driving licence": (
        ("driver_license",),
        ("운전면허", "운전면허번호", "driver license"),
        from_template("11-{d:2}-{d:6}-{d:2}"),
    ),
    "Korea passport": (("passport",), ("여권", "Korean passport"), from_template("M{d:3}{L:1}{d:4}")),
    "Thailand": (
        ("national_id",),
        ("Thai ID number", "เลขประจำตัวประชาชน"),
        accepted_by("{1:1}{d:12}", world.th_national),
    ),
    "Turkey": (
        ("national_id",),
        ("TC kimlik", "kimlik no", "TCKN"),
        accepted_by("{1:1}{d:10}", world.tr_national),
    ),
    "Turkey, plate": (
        ("vehicle_plate",),
        ("plaka", "license plate"),
        lambda rnd: "34 ABC " + from_template("{d:3}")(rnd),
    ),
    "Turkey, plate, hyphens": (
        ("vehicle_plate",),
        ("plaka", "license plate"),
        lambda rnd: "34-ABC-" + from_template("{d:3}")(rnd),
    ),
    "Turkey, plate, no blanks": (
        ("vehicle_plate",),
        ("plaka", "plaka numarası"),
        lambda rnd: "34ABC" + from_template("{d:3}")(rnd),
    ),
    "Nigeria NIN": (("national_id",), ("NIN", "NIMC"), from_template("{1:1}{d:10}")),
    "Nigeria plate": (("vehicle_plate",), ("plate number", "vehicle registration"), from_template("{L:3}-{d:3}{L:2}")),
    "Philippines TIN": (("tax_id",), ("TIN", "BIR"), from_template("{1:3}-{d:3}-{d:3}-000")),
    "South Africa": (
        ("national_id",),
        ("ID number", "South African ID"),
        with_birth_date("YYMMDD{d:4}08{d:1}", world.za_identity),
    ),
    "China": (
        ("national_id",),
        ("身份证", "resident identity card"),
        with_birth_date("11010519YYMMDD{d:4}", world.cn_resident),
    ),
    "Japan": (("national_id",), ("マイナンバー", "My Number"), accepted_by("{d:12}", world.jp_my_number)),
    "Brazil CPF": (("national_id",), ("CPF",), accepted_by("{d:3}.{d:3}.{d:3}-{d:2}", world.br_cpf)),
    "Brazil CNPJ": (
        ("company_number",),
        ("CNPJ",),
        accepted_by("{d:2}.{d:3}.{d:3}/0001-{d:2}", financial.br_cnpj),
    ),
    "Chile": (("national_id",), ("RUT",), accepted_by("1{d:1}.{d:3}.{d:3}-{d:1}", world.cl_rut)),
    "Argentina": (("national_id",), ("CUIL", "CUIT"), accepted_by("20-{d:8}-{d:1}", world.ar_cuil)),
    "Malaysia": (("national_id",), ("MyKad", "NRIC"), with_birth_date("YYMMDD-14-{d:4}", world.my_nric)),
    "Israel": (("national_id",), ("teudat zehut",), accepted_by("{1:1}{d:8}", world.il_identity)),
}
#: formats of driving licence numbers by state of the United States
_STATES: Final = {
    "AL": "{1:1}{d:6}", "AK": "{1:1}{d:6}", "AZ": "{L:1}{d:8}", "AR": "{1:1}{d:8}", "CA": "{L:1}{d:7}", "CO": "{d:2}-{d:3}-{d:4}",
    "CT": "{1:1}{d:8}", "DE": "{1:1}{d:6}", "FL": "{L:1}{d:12}", "GA": "{1:1}{d:8}", "HI": "H{d:8}", "ID": "{L:2}{d:6}{L:1}",
    "IL": "{L:1}{d:11}", "IN": "{d:4}-{d:2}-{d:4}", "IA": "{d:3}{L:2}{d:4}", "KS": "K{d:8}", "KY": "{L:1}{d:8}", "LA": "00{d:7}",
    "ME": "{1:1}{d:6}", "MD": "{L:1}{d:12}", "MA": "S{d:8}", "MI": "{L:1}{d:12}", "MN": "{L:1}{d:12}", "MS": "{1:1}{d:8}",
    "MO": "{L:1}{d:9}", "MT": "{1:1}{d:12}", "NE": "{L:1}{d:8}", "NV": "{1:1}{d:9}", "NH": "{d:2}{L:3}{d:5}", "NJ": "{L:1}{d:14}",
    "NM": "{1:1}{d:8}", "NY": "{1:1}{d:8}", "NC": "{1:1}{d:7}", "ND": "{L:3}{d:6}", "OH": "{L:2}{d:6}", "OK": "{L:1}{d:9}",
    "OR": "{1:1}{d:6}", "PA": "{1:1}{d:7}", "RI": "{1:1}{d:6}", "SC": "{1:1}{d:8}", "SD": "{1:1}{d:7}", "TN": "{1:1}{d:8}",
    "TX": "{1:1}{d:7}", "UT": "{1:1}{d:8}", "VT": "{d:7}A", "VA": "{L:1}{d:8}", "WA": "WDL{A:9}", "WV": "{L:1}{d:6}",
    "WI": "{L:1}{d:3}-{d:4}-{d:4}-{d:2}", "WY": "{d:6}-{d:3}",
}  # fmt: skip


def _random_letters(letters: str, count: int, rnd: Random) -> str:
    return "".join(rnd.choices(letters, k=count))


def formats() -> Iterator[Format]:
    for name, (types, words, value) in ISSUED_NUMBERS.items():
        contexts = tuple(part.replace("{name}", word).replace("VALUE", "{}") for word in words for part in _CONTEXTS)
        yield Format("persons", name, value, frozenset(types), contexts)
    for state, template in _STATES.items():
        contexts = (
            "My driver's license is {}",
            "driver license number: {}",
            "DL: {}",
            "driving license {}, issued in " + state,
        )
        yield Format("licences", f"US, {state}", from_template(template), frozenset({"driver_license"}), contexts)
