"""Maps the entity types of Gatehouse and the labels of the texts to each other."""

from typing import Final

#: Maps entity types of Gatehouse to labels of the texts, if the names differ.
LABELS: Final[dict[str, str]] = {
    "bank_account": "us_bank_account",
    "postal_code": "zip_code",
    "street_address": "address",
    "date_of_birth": "date",
    "swift_bic": "swift",
    "internal_host": "url",
}

#: Maps several labels of the texts to the one label that represents them all.
MERGES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "es_nie", "es_nif", "fi_personal_identity_code", "se_personnummer", "pl_pesel", "it_fiscal_code",
            "it_identity_card", "de_id_card", "de_social_security", "kr_rrn", "kr_frn", "th_tnin", "tr_national_id",
            "sg_nric_fin", "za_id_number", "ng_nin",
        ),
        "national_id",
    ),
    **dict.fromkeys(("de_tax_id", "de_tax_number", "in_pan", "au_tfn", "ph_tin"), "tax_id"),
    **dict.fromkeys(("de_vat_id", "it_vat_code", "in_gstin"), "vat_id"),
    **dict.fromkeys(
        ("au_abn", "au_acn", "kr_brn", "se_organisationsnummer", "de_handelsregister", "sg_uen"), "company_number"
    ),
    **dict.fromkeys(("de_health_insurance", "au_medicare"), "health_insurance_id"),
    **dict.fromkeys(("de_lanr", "de_bsnr"), "practitioner_id"),
    **dict.fromkeys(("uk_postcode", "de_plz"), "zip_code"),
}  # fmt: skip

#: Labels of the texts that `MERGES` does not replace. Each is either the name of an entity type of Gatehouse or a
#: value of `LABELS`.
SAME: Final = frozenset(
    {
        "ca_sin", "credit_card", "crypto_wallet", "date", "driver_license", "email", "iban", "in_aadhaar", "ip_address",
        "mac_address", "medical_license", "passport", "phone", "ssn", "uk_nhs", "uk_nino", "url", "us_bank_account",
        "us_itin", "us_mbi", "us_npi", "us_routing_number", "vehicle_plate", "zip_code",
    }
)  # fmt: skip

#: The labels of `b_presidio_research` for values with a fixed structure.
STRUCTURED: Final = (
    "credit_card", "date", "driver_license", "email", "iban", "ip_address", "phone", "ssn", "url",
)  # fmt: skip
