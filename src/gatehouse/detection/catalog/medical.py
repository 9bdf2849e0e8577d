"""Patterns for numbers of patients, practitioners and insurers, and for diagnoses."""

from functools import partial

from gatehouse.detection.catalog.shapes import GUESS_SCORE, alone, among_words, entry, shape, word, words
from gatehouse.detection.validators import medical as check
from gatehouse.detection.validators import proves, refutes
from gatehouse.detection.validators.checksums import digits, luhn

medical = partial(entry, "medical", "redact")

#: The characters of a US Medicare beneficiary identifier. The letters S, L, O, I, B and Z do not occur.
_LETTER, _EITHER = "[AC-HJKMNP-RT-Y]", "[0-9AC-HJKMNP-RT-Y]"
_DEA = "[ABCDEFGHJKLMPRSTUX][A-Z9]\\d{7}"
_MBI = rf"[1-9]{_LETTER}{_EITHER}\d-?{_LETTER}{_EITHER}\d-?{_LETTER}{{2}}\d{{2}}"

PATTERNS = (
    medical(
        "us_mbi",
        "US Medicare beneficiary identifier",
        word(rf"{_MBI}", 0.8),
        context=words("mbi, medicare, beneficiary, medicaid"),
        examples=("1EG4-TE5-MK73", "1EG4TE5MK73"),
        counterexamples=("1SG4-TE5-MK73", "1EG4-LE5-MK73", "1EG4TE5MK734"),
    ),
    medical(
        "us_npi",
        "US national provider identifier",
        word(r"[12]\d{9}", 0.3, refutes(check.npi), needs_context=True),
        word(r"[12]\d{3}[ \-]\d{3}[ \-]\d{3}", 0.3, refutes(check.npi), needs_context=True),
        among_words(r"[12]\d{3}[ \-]\d{3}[ \-]\d{3}", 0.6, refutes(check.npi)),
        alone(r"[12]\d{9}", GUESS_SCORE, refutes(check.npi)),
        context=words("npi, provider, national provider, provider identifier"),
        examples=("NPI 1234567893", "1234-567-893"),
        counterexamples=("NPI 1234567890", "at 1234567893 ms", "6672-9116-8321\n2637 192 750\n6672-9116-8322"),
    ),
    medical(
        "medical_license",
        "US DEA registration",
        word(_DEA, 0.8, proves(check.dea), needs_context=True, ignore_case=True),
        alone(_DEA, 0.8, proves(check.dea), ignore_case=True),
        context=words("dea, medical, medical license, certificate, prescriber"),
        examples=("DEA BB1388568",),
        counterexamples=("BB1388569", "see KB5034448 for the update"),
    ),
    medical(
        "uk_nhs",
        "UK NHS number",
        among_words(r"\d{3} \d{3} \d{4}", 0.7, refutes(check.nhs_and_no_phone)),
        word(r"\d{10}|\d{3}[ \-]\d{3}[ \-]\d{4}", 0.3, refutes(check.nhs), needs_context=True),
        alone(r"\d{10}", GUESS_SCORE, refutes(check.nhs)),
        alone(r"\d{3} \d{3} \d{4}", 0.6, refutes(check.nhs)),
        alone(r"\d{3}-\d{3}-\d{4}", 0.7, refutes(check.nhs_and_no_phone)),
        context=words("nhs, nhs number, national health, health service, health services, health authority"),
        examples=("401-023-2137", "NHS 9434765919"),
        counterexamples=("401-023-2138", "at 9434765919 ms", "call 480-797-8276"),
    ),
    medical(
        "health_insurance_id",
        "Health insurance number",
        word(r"[A-Z]\d{9}", 0.6, proves(check.kvnr), needs_context=True, ignore_case=True),
        alone(r"[A-Z]\d{9}", 0.6, proves(check.kvnr), ignore_case=True),
        word(r"[2-6]\d{3} \d{5} \d", 0.6, refutes(check.au_medicare)),
        word(r"[2-6]\d{9}", 0.3, refutes(check.au_medicare), needs_context=True),
        word(
            r"\d{4}[ \-]\d{3}[ \-]\d{3}(?:[ \-][A-Z]{2})?",
            0.3,
            refutes(lambda text: luhn(digits(text))),
            needs_context=True,
        ),
        word(r"[A-Z]{0,4}\d{6,12}[A-Z0-9]{0,2}", 0.2, needs_context=True),
        context=words(
            "medicare, krankenversicherung, krankenversichertennummer, egk, ohip, health card, health "
            "insurance, member id, policy number, insurance number, subscriber id, versichertennummer, "
            "krankenversicherungsnummer, kvnr, krankenkasse, gesundheitskarte, versichertenkarte, "
            "versicherungsnummer, gkv, aok"
        ),
        examples=("A000500015", "Medicare 2123 45670 1", "member id: XYZ123456789"),
        counterexamples=("A123456787", "2123 25870 1", "order A000500015"),
    ),
    medical(
        "practitioner_id",
        "Practitioner or practice number",
        word(r"\d{9}", 0.3, refutes(check.lanr), needs_context=True),
        alone(r"\d{9}", GUESS_SCORE, refutes(check.lanr)),
        word(r"\d{9}", 0.2, refutes(check.bsnr), needs_context=True),
        word(r"\d{6,8}", 0.2, needs_context=True),
        context=words(
            "lanr, bsnr, arztnummer, betriebsstättennummer, gmc, gmc number, medical council, rpps, nmc, arzt-nr, "
            "arzt nr, arzt-nummer, vertragsarzt, kassenarzt, hausarzt, facharzt, betriebsstätte, praxisnummer, "
            "arztpraxis"
        ),
        examples=("LANR: 123456601", "GMC number 7012345"),
        counterexamples=("123456901", "at 123456601 ms"),
    ),
    medical(
        "medical_record_number",
        "Medical record number",
        shape(
            r"\b(?:mrn|patient (?:id|number|no\.?)|chart number|medical record(?: number| no\.?| #)?|fallnummer)"
            r"\W{0,3}(?:is|was)?\W{0,3}(?P<value>[A-Z]{0,3}-?\d{4,12})\b",
            0.8,
            ignore_case=True,
        ),
        examples=("MRN: 00123456", "patient ID is P-1234567"),
        counterexamples=("record 00123456", "mrn unknown"),
    ),
    medical(
        "diagnosis_code",
        "Diagnosis code",
        word(r"[A-TV-Z]\d[0-9AB](?:\.[0-9A-TV-Z]{1,4})?", 0.2, needs_context=True),
        context=words("icd, icd-10, icd10, diagnosis, diagnosed, dx:, diagnose, diagnostic"),
        examples=("diagnosis: E11.9", "ICD-10 F32.1"),
        counterexamples=("E11.9", "room B12"),
    ),
)
