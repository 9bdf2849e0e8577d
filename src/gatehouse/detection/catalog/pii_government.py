"""Patterns for numbers that governments issue to persons.

A number that consists only of digits needs more evidence than its check digit, which is right by chance in one of ten
cases. The evidence is a context word, the usual grouping of the digits, or that the number is the complete text.
"""

from functools import partial

from gatehouse.detection.catalog.shapes import GUESS_SCORE, alone, among_words, entry, shape, word, words
from gatehouse.detection.validators import europe, proves, refutes, supports, world

pii = partial(entry, "pii", "redact")

PATTERNS = (
    pii(
        "ssn",
        "US social security number",
        shape(r"(?:^|[^\w\-])(?P<value>\d{3}-\d{2}-\d{4})\b", 0.8, refutes(world.us_ssn)),
        among_words(r"\d{3}[ .]\d{2}[ .]\d{4}", 0.6, refutes(world.us_ssn)),
        word(r"\d{9}|\d{3}[ .]\d{2}[ .]\d{4}", 0.2, refutes(world.us_ssn), needs_context=True),
        word(r"\d{5}-\d{4}|\d{3}-\d{6}", 0.2, refutes(world.us_ssn), needs_context=True),
        context=words("ssn, social security, social security number, ss#, ssid"),
        examples=("my ssn is 536-22-8726", "536 22 8726", "SSN 536228726"),
        counterexamples=(
            *("078-05-1120", "000-12-3456", "666-12-3456", "order 536228726"),
            *('"GET / HTTP/1.1" 200 45 1532', "512 64 2048\n512 32 4096"),
        ),
    ),
    pii(
        "us_itin",
        "US individual taxpayer number",
        word(r"9\d{2}[- ]?\d{2}[- ]?\d{4}", 0.3, refutes(world.us_itin), needs_context=True),
        word(r"9\d{2}-\d{2}-\d{4}", 0.7, refutes(world.us_itin)),
        context=words("itin, individual taxpayer, taxpayer, tax id, tin"),
        examples=("911-70-1234", "my itin: 911701234"),
        counterexamples=("911-89-1234", "911701234"),
    ),
    pii(
        "ca_sin",
        "Canadian social insurance number",
        alone(r"\d{3}[ \-]\d{3}[ \-]\d{3}", 0.6, refutes(world.ca_sin)),
        word(r"\d{9}|\d{3}[ \-]\d{3}[ \-]\d{3}", 0.3, refutes(world.ca_sin), needs_context=True),
        shape(r"\b(?:SIN|NAS)\W{1,3}(?P<value>\d{3}[ \-]?\d{3}[ \-]?\d{3})\b", 0.6, refutes(world.ca_sin)),
        # `sin` and `nas` alone are not context words, because they are Spanish and Polish words.
        context=words(
            "sin:, sin=, sin\", sin', sin is, sin number, sin no, sin #, my sin, your sin, his sin, "
            "her sin, social insurance, numéro d'assurance sociale, nas:, nas=, nas\", mon nas, le nas, numéro nas"
        ),
        examples=("130 692 544", "SIN 130692544"),
        counterexamples=("130 692 545", "111 111 111", "130692544", "tel 578 813 354", "580 768 901 habitants"),
    ),
    pii(
        "uk_nino",
        "UK national insurance number",
        word(
            r"(?:[AC-EHJ-LM-PR-TW-Z][A-CEGHJ-NPR-TW-Z]|[OSPTWXY][A-CEGHJ-NPR-TW-Z]) ?\d{2} ?\d{2} ?\d{2} ?[A-D]",
            0.7,
            refutes(lambda text: text[:2].upper() not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}),
            ignore_case=True,
        ),
        context=words("nino, national insurance, ni number"),
        examples=("AA 12 34 56 B", "PR 123612C"),
        counterexamples=("AA 12 34 56 H", "BG123612A", "UV 98 76 54 B"),
    ),
    pii(
        "in_aadhaar",
        "Aadhaar number",
        among_words(r"[2-9]\d{3} \d{4} \d{4}", 0.6, refutes(world.in_aadhaar)),
        word(r"[2-9]\d{11}|[2-9]\d{3}[ :\-]\d{4}[ :\-]\d{4}", 0.3, refutes(world.in_aadhaar), needs_context=True),
        alone(r"[2-9]\d{11}", GUESS_SCORE, refutes(world.in_aadhaar)),
        alone(r"[2-9]\d{3}[ :\-]\d{4}[ :\-]\d{4}", 0.6, refutes(world.in_aadhaar)),
        # `uid` is not a context word, because user ids, calendar entries and Kubernetes objects also have a `uid`.
        context=words("aadhaar, aadhar, uidai"),
        examples=("3998 7654 3211", "Aadhaar 399876543211"),
        counterexamples=(
            *("3998 7654 3212", "id 399876543211", "order 3998-7654-3211", "uid=399876543211"),
            "Aadhaar job 7ef29bf1-2e6e-41cf-a04a-399876543211",
        ),
    ),
    pii(
        "passport",
        "Passport number",
        word(
            r"[A-Z]{1,2} ?\d{6,8}|\d{9}|\d{2}[A-Z]{2}\d{5}|[A-Z]\d{2}[A-Z0-9]{5,6}|[A-Z]{3}\d{6}|\d{8}"
            r"|[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}|[A-Z]\d{2} \d{5}",
            0.2,
            refutes(lambda text: any(character.isdigit() for character in text)),
            needs_context=True,
            ignore_case=True,
        ),
        alone(
            r"[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8,9}",
            0.6,
            refutes(europe.icao_checked),
            ignore_case=True,
        ),
        shape(
            r"P<[A-Z]{3}[A-Z<]{2,36}<<<\s?(?P<value>[A-Z0-9<]{9}\d[A-Z]{3}\d{7}[MFX<]\d{7}[A-Z0-9<]{14}[0-9<]\d)", 0.95
        ),
        context=words(
            "passport, passport number, passport no, passportnumber, travel document, reisepass, "
            "passnummer, passeport, pasaporte, passaporto, pasaport, paszport, passaporte, 여권, passports, "
            "reisepassnummer, pass-nr, pass nr, número de pasaporte, paspoort, паспорт"
        ),
        examples=("my passport number is A12345678", "Reisepass: C01X00T47"),
        counterexamples=("A12345678", "order number 123456789"),
    ),
    pii(
        "driver_license",
        "Driving licence number",
        word(
            r"[A-Z]{5}\d[0156]\d(?:[0-2]\d|3[01])\d[A-Z0-9]{2}[A-Z0-9]{3}|[A-Z9]{5}\d{6}[A-Z9]{2}[A-Z0-9]{3}",
            0.6,
            refutes(europe.uk_driving_licence),
            ignore_case=True,
        ),
        word(r"(?:1[1-9]|2[0-8])[ \-]\d{2}[ \-]\d{6}[ \-]\d{2}", 0.6),
        alone(r"[A-Z]{2}\d{8}[A-Z0-9]", 0.6, ignore_case=True),
        shape(
            r"(?:^|[^\w\-])(?P<value>[A-Z]\d{3}-\d{4}-\d{4}(?:-\d{2})?|[A-Z]\d{3}-\d{3}-\d{2}-\d{3}-\d)(?:[^\w\-]|$)",
            0.6,
        ),
        word(
            r"[A-Z]{1,2}\d{5,14}[A-Z0-9]?|\d{7,14}|[A-Z]\d{2}-\d{2}-\d{4}|\d{3}-\d{2}-\d{4}|\d{2}-\d{3}-\d{4}|\d{4}-\d{2}-\d{4}|[A-Z]\d[A-Z0-9]\d{3}[A-Z0-9]\d{2}[A-Z]",
            0.2,
            needs_context=True,
            ignore_case=True,
        ),
        # Formats of the driving licences of US states.
        word(
            r"[A-Z]\d{3,4}|[A-Z]{2}\d{2,4}|\d{3}[A-Z]{2}\d{4}|\d{2}[A-Z]{3}\d{5}|[A-Z]{3}\d{6}|\d{6}-\d{3}|\d{7,9}[A-Z]"
            r"|\d{8}[A-Z]{2}|[A-Z]{2}\d{6}[A-Z]|[A-Z]\d{18}|\d{16}|U1[A-Z0-9]{7}[A-Z]",
            0.2,
            needs_context=True,
            ignore_case=True,
        ),
        word(r"WDL[A-Z0-9]{9}", 0.6),
        context=words(
            "driver license, driver's license, drivers license, driver licence, driving licence, driving "
            "license, dl number, dl no, dl:, license number, licence number, führerschein, "
            "führerscheinnummer, permis de conduire, patente, carnet de conducir, permiso de conducir, "
            "운전면허, 운전면허번호, 면허번호, drivers licence, driver's licence, driving permit, driver permit, "
            "dls, cdl, cdls, dl#, lic#, dvla, fahrerlaubnis, fahrerlaubnisnummer, patente di guida, prawo jazdy, "
            "rijbewijs, körkort"
        ),
        examples=("MORGA657054SM9IJ", "my driver license is H12234567", "Führerscheinnummer: BO12345678A"),
        counterexamples=("12345678901", "H12234567", "5596922E-A900-4954-8654-0123456789AB"),
    ),
    pii(
        "national_id_europe",
        "National identity number (Europe)",
        # The letter must be in upper case, because hashes contain the lower-case form.
        word(r"\d{8}-?[A-HJ-NP-TV-Z]|\d{7}-[A-HJ-NP-TV-Z]", 0.6, proves(europe.es_nif)),
        word(r"\d{7,8}-?[A-HJ-NP-TV-Z]", 0.3, proves(europe.es_nif), needs_context=True, ignore_case=True),
        alone(r"\d{7,8}-?[A-HJ-NP-TV-Z]", 0.6, proves(europe.es_nif), ignore_case=True),
        word(r"[XYZ]-?\d{7}-?[A-Z]", 0.8, proves(europe.es_nie), ignore_case=True),
        word(
            r"[0-3]\d[01]\d{3}[-+UVWXYABCDEF]\d{3}[0-9A-FHJ-NPR-Y]",
            0.8,
            proves(europe.fi_identity_code),
            ignore_case=True,
        ),
        word(r"(?:18|19|20)?\d{6}[-+]\d{4}", 0.6, refutes(europe.se_personal_of_adults)),
        word(r"1[89]\d{10}", 0.6, refutes(europe.se_personal_of_adults)),
        word(r"(?:18|19|20)?\d{6}[-+]\d{4}|(?:18|19|20)\d{10}", 0.3, refutes(europe.se_personal), needs_context=True),
        word(r"\d{11}", 0.3, refutes(europe.pl_pesel), needs_context=True),
        alone(r"\d{11}", GUESS_SCORE, refutes(europe.pl_pesel)),
        word(
            r"[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]",
            0.8,
            proves(europe.it_fiscal_code),
            ignore_case=True,
        ),
        word(
            r"[LMNPRTVWXYCFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8}\d",
            0.3,
            refutes(europe.icao_checked),
            needs_context=True,
            ignore_case=True,
        ),
        word(
            r"[LMNPRTVWXYCFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8}|T\d{8}",
            0.3,
            refutes(europe.de_document),
            needs_context=True,
            ignore_case=True,
        ),
        alone(
            r"[LMNPRTVWXYCFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8,9}",
            0.6,
            refutes(europe.icao_checked),
            ignore_case=True,
        ),
        alone(r"T\d{8}", 0.6),
        word(r"\d{2}[0-3]\d[01]\d{3}[A-Z]\d{3}", 0.8, proves(europe.de_pension), ignore_case=True),
        word(r"[12] \d{2} \d{2} (?:\d{2}|2[AB]) \d{3} \d{3} \d{2}", 0.7, proves(europe.fr_nir)),
        alone(r"[12]\d{2}(?:0[1-9]|1[0-2])(?:\d{2}|2[AB])\d{8}", GUESS_SCORE, refutes(europe.fr_nir)),
        word(
            r"[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}", 0.3, refutes(europe.fr_nir), needs_context=True
        ),
        word(r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", 0.8, proves(europe.be_national)),
        word(r"756\.?\d{4}\.?\d{4}\.?\d{2}", 0.8, proves(europe.ch_ahv)),
        word(r"[0-3]\d[01]\d{3}[- ]?\d{4}", 0.3, refutes(europe.dk_cpr), needs_context=True),
        word(r"\d{6} ?\d{5}", 0.4, refutes(europe.no_birth_number), needs_context=True),
        word(r"[1-8]\d{12}", 0.3, refutes(europe.ro_cnp), needs_context=True),
        word(r"\d{9}|\d{3}[. ]\d{3}[. ]\d{3}", 0.3, refutes(europe.nl_bsn), needs_context=True),
        word(r"\d{6}/\d{4}", 0.7, refutes(europe.cz_birth_number)),
        word(r"\d{4} ?\d{6}", 0.3, refutes(europe.at_social_security), needs_context=True),
        word(r"\d{7}[A-W][A-IW]?", 0.3, refutes(europe.ie_pps), needs_context=True),
        # Italian identity cards on paper, and electronic ones.
        shape(
            r"identit[àa]\W{1,3}(?:[\w.°]{1,14}\W{1,3}){0,3}?"
            r"(?P<value>[A-Z]{2} ?\d{7}|\d{7}[A-Z]{2}|[A-Z]{2}\d{5}[A-Z]{2})\b",
            0.7,
            ignore_case=True,
        ),
        word(r"\d{11}", 0.3, refutes(europe.hr_oib), needs_context=True),
        entity_type="national_id",
        context=words(
            "pesel, personalausweis, ausweis, ausweisnummer, bsn, burgerservicenummer, cpr, fødselsnummer, "
            "oib, pps, ppsn, svnr, sozialversicherungsnummer, identity card, id card, national id, dni, "
            "nif, codice fiscale, personnummer, cnp, hetu, henkilötunnus, rvnr, identity number, "
            "personalausweisnummer, documento nacional de identidad, carta d'identità, "
            "carta di identità, carta identità, personbeteckning, pnr, samordningsnummer, rentenversicherungsnummer, "
            "rijksregisternummer, rodné číslo, numéro de sécurité sociale, sécurité sociale, securite sociale, "
            "nir, insee"
        ),
        examples=("12345678-Z", "X9613851N", "131052-308T", "15070649C103", "pesel 44051401458", "756.9217.0769.85"),
        counterexamples=("12345678A", "131052/308T", "15070649C100", "85040812345"),
    ),
    pii(
        "national_id_asia",
        "National identity number (Asia)",
        word(r"\d{6}-[1-8]\d{6}", 0.8, refutes(world.kr_resident)),
        word(r"\d{6}[1-8]\d{6}", 0.3, refutes(world.kr_resident), needs_context=True),
        alone(r"\d{6}[1-8]\d{6}", GUESS_SCORE, refutes(world.kr_resident)),
        word(r"[1-8](?:-\d{4}-\d{5}-\d{2}-\d|\d{12})", 0.3, refutes(world.th_national)),
        alone(r"[1-8]\d{12}", GUESS_SCORE, refutes(world.th_national)),
        word(r"[1-9]\d{10}", 0.3, refutes(world.tr_national), needs_context=True),
        alone(r"[1-9]\d{10}", GUESS_SCORE, refutes(world.tr_national)),
        word(r"[STFGM]\d{7}[A-Z]", GUESS_SCORE, supports(world.sg_nric)),
        word(r"[STFGM]\d{7}[A-Z]", 0.3, supports(world.sg_nric), ignore_case=True),
        word(r"[1-9]\d{16}[\dXx]", 0.7, proves(world.cn_resident)),
        word(r"[A-Z][1289]\d{8}", 0.6, proves(world.tw_national), needs_context=True),
        alone(r"[A-Z][1289]\d{8}", 0.6, proves(world.tw_national)),
        shape(r"\b(?P<value>[A-Z]{1,2}\d{6}\([0-9A]\))", 0.7, proves(world.hk_identity)),
        word(r"\d{12}|\d{4}[ \-]\d{4}[ \-]\d{4}", 0.3, refutes(world.jp_my_number), needs_context=True),
        word(r"\d{16}", 0.3, refutes(world.id_nik), needs_context=True),
        word(r"\d{6}-\d{2}-\d{4}", 0.6, refutes(world.my_nric)),
        word(r"\d{9}", 0.3, refutes(world.il_identity), needs_context=True),
        # Indian voter identity cards.
        shape(
            r"\b(?:voter|elector|epic)\W{1,3}(?:[\w.]{1,14}\W{1,3}){0,3}?(?P<value>[A-Z]{3}\d{7})\b",
            0.7,
            ignore_case=True,
        ),
        entity_type="national_id",
        context=words(
            "rrn, frn, resident registration, 주민등록번호, thai id, national id, เลขประจำตัวประชาชน, "
            "เลขบัตรประชาชน, nric, kimlik, tckn, t.c., my number, マイナンバ, 個人番号, nik, "
            "ktp, teudat zehut, 身份证, identity number, identity card, id card, korean, "
            "외국인등록번호, 외국인번호, foreigner registration, tnin, thai id number, kimlik no, fin number, "
            "kojin bango"
        ),
        examples=("960121-1234567", "10000000146", "S2740116C", "11010519491231002X", "Thai ID 1234567890121"),
        counterexamples=("001332-1234567", "10000000145", "11010519491231002Y"),
    ),
    pii(
        "national_id_world",
        "National identity number (Africa and the Americas)",
        word(r"\d{13}", 0.3, refutes(world.za_identity), needs_context=True),
        alone(r"\d{13}", GUESS_SCORE, refutes(world.za_identity)),
        word(r"[23]\d{13}", 0.3, refutes(world.eg_national), needs_context=True),
        word(r"\d{11}", 0.2, needs_context=True),
        word(r"\d{3}\.\d{3}\.\d{3}-\d{2}", 0.8, proves(world.br_cpf)),
        word(r"\d{11}", 0.3, refutes(world.br_cpf), needs_context=True),
        word(r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]", 0.8, proves(world.cl_rut)),
        word(r"(?:20|23|24|27|30|33|34)-\d{8}-\d", 0.8, proves(world.ar_cuil)),
        word(r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[0-9A-Z]\d", 0.9, proves(world.mx_curp), ignore_case=True),
        entity_type="national_id",
        context=words(
            "nin, nimc, national identification number, national identity number, cpf, curp, cédula, cedula, "
            "rsa id, south african id"
        ),
        examples=("9202201234088", "529.982.247-25", "12.345.678-5", "NIN 12345678901"),
        counterexamples=("8001015009086", "529.982.247-26", "12345678901"),
    ),
    pii(
        "tax_id",
        "Tax number of a person",
        word(r"\d{11}|\d{2} \d{3} \d{3} \d{3}", 0.3, refutes(europe.de_tax_id), needs_context=True),
        alone(r"\d{11}", GUESS_SCORE, refutes(europe.de_tax_id)),
        word(r"\d{2,3}/\d{3,4}/\d{4,5}", 0.3, needs_context=True),
        alone(r"\d{2,3}/\d{3,4}/\d{4,5}", 0.6),
        word(r"(?:0[1-9]|1[0-6]|[1-9]\d)\d{2}[0-9]\d{8}", 0.2, needs_context=True),
        alone(r"0[1-9]\d{11}", GUESS_SCORE),
        word(r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", 0.6),
        word(r"[A-Z]{5}\d{4}[A-Z]", 0.2, needs_context=True, ignore_case=True),
        word(r"\d{3} ?\d{3} ?\d{3}", 0.3, refutes(world.au_tfn), needs_context=True),
        word(r"\d{2}-\d{7}|\d{3}-\d{3}-\d{2}-\d{2}|\d{3}-\d{2}-\d{2}-\d{3}", 0.3, needs_context=True),
        word(r"\d{3}-\d{3}-\d{3}(?:-\d{3,5})?", 0.3, needs_context=True),
        word(r"\d{10}", 0.2, needs_context=True),
        word(r"\d{9}", 0.2, refutes(europe.pt_nif), needs_context=True),
        word(r"[0-3]\d{12}", 0.2, needs_context=True),
        context=words(
            "tax id, tax number, tax file number, tfn, steuer-id, steuernummer, "
            "steueridentifikationsnummer, idnr, st.-nr, st-nr, pan number, pan no, pan card, pan is, pan:, pan=, "
            "my pan, permanent account number, tin, taxpayer, employer identification, ein:, utr, numéro fiscal, "
            "contribuinte, nif, spi, steuer, finanzamt, steuerbescheid, steuer-nr, steuer nr, nip, инн, taxid"
        ),
        examples=("IdNr. 98765432106", "my PAN number is ABBPM4567S", "123/456/78901", "TFN 123 456 782"),
        counterexamples=("98765432100", "order 98765432106", "tax 12"),
    ),
)
