"""Recognizes dates of birth: a complete date shortly after words such as "date of birth"."""

from typing import Final

import re2

from gatehouse.detection.findings import Finding

ENTITY: Final = "date_of_birth"

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


def find(unit: str) -> list[Finding]:
    return [Finding(match.start(1), match.end(1), ENTITY, 0.9, ENTITY) for match in _BIRTH.finditer(unit)]
