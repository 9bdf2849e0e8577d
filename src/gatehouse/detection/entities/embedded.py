"""The embedded recognizer. A small network recognizes names, and rules recognize addresses and dates of birth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import re2

from gatehouse.detection.entities import addresses
from gatehouse.detection.entities.network.decoding import KINDS
from gatehouse.detection.entities.network.tagger import Tagger
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import refuse_unknown
from gatehouse.detection.units import units

DATA: Final = Path(__file__).with_name("data")
BIRTH_ENTITY: Final = "date_of_birth"

_MONTH: Final = (
    r"(?:jan(?:uary|v\.?)?|feb(?:ruary)?|mar(?:ch|s)?|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|januar|februar|m(?:ä|ae)rz|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    r"janvier|f[ée]vrier|avril|juin|juillet|ao[uû]t|septembre|octobre|novembre|d[ée]cembre)\.?"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?:19|20)\d{2}"
_DATE: Final = (
    rf"(?:{_YEAR}[-/. ]{{1,2}}(?:0?[1-9]|1[0-2])[-/. ]{{1,2}}{_DAY}"
    rf"|{_DAY}[-/. ]{{1,2}}{_DAY}[-/. ]{{1,2}}(?:{_YEAR}|\d{{2}})"
    rf"|{_DAY}(?:st|nd|rd|th)?\.?[ -](?:of |de )?{_MONTH},?[ -](?:de )?{_YEAR}"
    rf"|{_MONTH}[ -]{_DAY}(?:st|nd|rd|th)?,?[ -]{_YEAR}"
    rf"|{_YEAR}年\d{{1,2}}月\d{{1,2}}日)"
)
_BIRTH_WORDS: Final = (
    r"(?:\bdate[ _-]?of[ _-]?birth|\bbirth[ _-]?(?:date|day)|\bdob|\bd\.o\.b\.?|\bborn|\bgeboren|"
    r"\bgeburtsdatum|\bgeb\.|\bgeburtstag|\bn[ée]e?(?:\(e\))? le|\bdate de naissance|"
    r"\bfecha de nacimiento|\bnacid[oa] el|\bdata di nascita|\bnat[oa] il|\bdata de nascimento|"
    r"\bgeboortedatum|\bf[øo]dselsdato|\bfödelsedatum|出生日期|生年月日)"
)
#: Up to 30 code points may be between the words and the date, such as "(dd/mm/yyyy):" in a form.
_BIRTH: Final = re2.compile(rf"(?i){_BIRTH_WORDS}[\"']?[^\d]{{0,30}}?({_DATE})(?:\D|$)")


def find_births(unit: str) -> list[Finding]:
    """Return the dates of birth: complete dates shortly after words such as "date of birth"."""
    return [Finding(match.start(1), match.end(1), BIRTH_ENTITY, 0.9, BIRTH_ENTITY) for match in _BIRTH.finditer(unit)]


class EmbeddedRecognizer:
    """Recognizes names with the network, and addresses and dates of birth with rules. Calls block and use one
    thread."""

    entities: tuple[str, ...] = (*KINDS, addresses.ENTITY, BIRTH_ENTITY)

    def __init__(self, data: Path = DATA) -> None:
        self._tagger = Tagger(data)

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        refuse_unknown(labels, self.entities)
        return [self._read(text) for text in texts]

    def _read(self, text: str) -> list[Finding]:
        findings: list[Finding] = []
        for start, end in units(text):
            findings.extend(moved(finding, start) for finding in self._read_unit(text[start:end]))
        return findings

    def _read_unit(self, unit: str) -> list[Finding]:
        """Return the findings of a unit. If findings of a rule and of the network overlap, only the finding of the rule
        is returned, because rules are more specific."""
        certain = addresses.find(unit)
        certain += [birth for birth in find_births(unit) if not overlaps(birth, certain)]
        names = [name for name in self._tagger.find(unit) if not overlaps(name, certain)]
        return sorted([*certain, *names], key=lambda finding: finding.start)


def overlaps(finding: Finding, others: list[Finding]) -> bool:
    return any(finding.start < other.end and other.start < finding.end for other in others)


def moved(finding: Finding, by: int) -> Finding:
    return Finding(finding.start + by, finding.end + by, finding.entity_type, finding.score, finding.source)
