"""Maps the type names of each engine to the labels of the texts, and lists the labels that an engine claims to find."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from bench.dlp.labels import LABELS, MERGES, SAME

from gatehouse.detection.catalog import BUILT_IN

#: The label and category of secrets. Sets of secrets are judged by category, so the label of a secret does not matter.
SECRET: Final = ("secret", "secret")
NAMES: Final = ("person", "organization", "location", "address")

#: Labels for those types of Presidio and llm-guard whose label is not simply the type's name in lower case.
PRESIDIO: Final[dict[str, str]] = {
    "ABA_ROUTING_NUMBER": "us_routing_number",
    "CA_POSTAL_CODE": "zip_code",
    "CREDIT_CARD_RE": "credit_card",
    "CRYPTO": "crypto_wallet",
    "DATE_TIME": "date",
    "DE_FUEHRERSCHEIN": "driver_license",
    "DE_KFZ": "vehicle_plate",
    "DE_PASSPORT": "passport",
    "EMAIL_ADDRESS": "email",
    "EMAIL_ADDRESS_RE": "email",
    "ES_PASSPORT": "passport",
    "IBAN_CODE": "iban",
    "IN_PASSPORT": "passport",
    "IN_VEHICLE_REGISTRATION": "vehicle_plate",
    "IT_DRIVER_LICENSE": "driver_license",
    "IT_PASSPORT": "passport",
    "KR_DRIVER_LICENSE": "driver_license",
    "KR_PASSPORT": "passport",
    "NG_VEHICLE_REGISTRATION": "vehicle_plate",
    "PHONE_NUMBER": "phone",
    "PH_PASSPORT": "passport",
    "TR_LICENSE_PLATE": "vehicle_plate",
    "UK_DRIVING_LICENCE": "driver_license",
    "UK_PASSPORT": "passport",
    "UK_VEHICLE_REGISTRATION": "vehicle_plate",
    "US_BANK_NUMBER": "us_bank_account",
    "US_DRIVER_LICENSE": "driver_license",
    "US_PASSPORT": "passport",
    "US_SSN": "ssn",
    "US_SSN_RE": "ssn",
    "ZA_DRIVER_LICENSE": "driver_license",
    "ZA_LICENSE_PLATE": "vehicle_plate",
    "ZA_MOBILE_NUMBER": "phone",
    "ZA_PASSPORT": "passport",
    "ZA_TELEPHONE_NUMBER": "phone",
}
#: Types without a label in the texts. Findings of these types are neither right nor wrong.
UNJUDGED: Final = frozenset(
    {
        "EMAIL", "ID", "PH_UMID", "US_CLAIM_NUMBER", "US_HEALTH_INSURANCE_MEMBER_ID", "US_PRESCRIPTION_NUMBER",
        "US_PRIOR_AUTHORIZATION_NUMBER", "US_PROVIDER_TAX_ID", "US_REFERRAL_NUMBER", "UUID", "ZA_COMPANY_REGISTRATION",
        "ZA_INCOME_TAX_NUMBER", "ZA_TRAFFIC_REGISTER_NUMBER", "ZA_VAT_NUMBER",
    }
)  # fmt: skip
#: Labels of the texts for which no built-in pattern has a type of the same name.
OTHERS: Final = frozenset({*NAMES, "age", "in_voter", "nrp", "title"})
LABELS_OF_TEXTS: Final = SAME | MERGES.keys() | OTHERS

_CATEGORIES: Final = {pattern.entity_type: pattern.category for pattern in BUILT_IN}

#: maps a type of an engine to a label and a category
Named: TypeAlias = dict[str, tuple[str, str]]


def gatehouse(types: Iterable[str]) -> Named:
    return {name: (LABELS.get(name, name), _CATEGORIES.get(name, "ner")) for name in types}


def secrets(types: Iterable[str]) -> Named:
    named = dict.fromkeys(types, SECRET)
    return named | {name: ("ip_address", "infrastructure") for name in named if name.startswith("Public IP")}


def presidio(types: Iterable[str]) -> Named:
    """Map the types of Presidio. Raises KeyError if a type has no label and is not in `UNJUDGED`."""
    named = {}
    for name in types:
        label = PRESIDIO.get(name, name.lower())
        if name not in UNJUDGED and label not in LABELS_OF_TEXTS:
            raise KeyError(name)
        # The sets for Presidio are judged by label, and none of its types is a secret.
        named[name] = (name if name in UNJUDGED else MERGES.get(label, label), "identifier")
    return named


def claims(engine: str, types: Iterable[str]) -> frozenset[str]:
    """Return the labels that an engine with these types claims to find, before they are merged. All secrets are
    `secret`."""
    if BY_ENGINE[engine] is presidio:
        # An engine that finds the numbers of one country does not claim to find those of another, although these labels
        # are merged for judging.
        return frozenset({PRESIDIO.get(name, name.lower()) for name in types if name not in UNJUDGED})
    if BY_ENGINE[engine] is secrets:
        # detect-secrets has a plugin for network addresses, but a default filter removes all its findings.
        return frozenset({"secret"})
    labels = {label for label, _ in gatehouse(types).values()}
    return frozenset({"secret"} | {label for label in LABELS_OF_TEXTS if MERGES.get(label, label) in labels})


BY_ENGINE: Final[dict[str, Callable[[Iterable[str]], Named]]] = {
    "gatehouse": gatehouse,
    "gatehouse_entities": gatehouse,
    "hyperscan": gatehouse,
    "gitleaks": secrets,
    "detect_secrets": secrets,
    "detect_secrets_lines": secrets,
    "presidio": presidio,
    "presidio_patterns": presidio,
    "llm_guard_secrets": secrets,
    "llm_guard_anonymize": presidio,
}
