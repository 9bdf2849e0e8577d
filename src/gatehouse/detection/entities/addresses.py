"""Recognizes postal addresses by their form: a number next to a street name, post office boxes, and military mail.

The words for streets are English, German and Dutch, and words of the Romance, the Scandinavian and some Slavic
languages. Each word of a text is replaced by a letter for its class, and an address is a regular expression over these
letters. This keeps the expressions readable, and the matching time is bounded by the length of the text. Adjacent parts
of an address are one finding, including a town with a post code after the street.
"""

import re
from typing import Final

from gatehouse.detection.findings import Finding

ENTITY: Final = "address"
_SCORE: Final = 0.85

_TOKEN: Final = re.compile(
    r"[^\W\d_][^\W\d_.'\u2019-]*(?:[.'\u2019-]+[^\W\d_]+)*\d?[A-Z\d]?\.?|\d+\w*(?:[-/]\d+)?|\S|\n"
)

_WORDS: Final = {
    # Words at the end of street names.
    "S": "street str st avenue ave av road rd boulevard blvd lane ln drive dr court ct place pl square sq squares "
    "terrace parkway pkwy highway hwy circle cir trail crescent close alley mews turnpike plaza island "
    "islands garden gardens grove hill row walk way wharf quay bypass crossing loop ridge utca tee iela",
    # Words before street names.
    "B": "rue avenue boulevard chemin impasse quai allée via viale piazza corso calle avenida avda plaza paseo "
    "carrera rua travessa praça ulica ul ulitsa os al strada bulevardul calea rambla camino rúa",
    "M": "de du des la le les del della dei dos das da do di van den der y e of the los las",
    "U": "apt apartment suite ste flat",
    "P": "po p.o postfach",
    "X": "box",
    "Q": "psc unit",
    "F": "apo fpo dpo",
    "D": "n s e w ne nw se sw",
}
_CLASS: Final = {word: letter for letter, words in reversed(_WORDS.items()) for word in words.split()}
#: Street names that are one word: Hauptstraße, Mellemvej, Skolegatan.
_ENDING: Final = re.compile(
    r"(?i).{2,}(?:stra(?:ß|ss)e|gasse|platz|allee|damm|ufer|weg|vej|gade|gata|gatan|gaten|v[äa]gen|veien|vei|vegen|"
    r"katu|laan|straat|plein|gracht|dijk|str[æe]ti|braut|g[øo]tu|singel)|.{3,}str\."
)
#: Common words that are treated as words before a street name only if they are capitalized.
_CAPITAL_ONLY: Final = frozenset(("via", "place", "corso", "os", "al", "plaza", "strada", "avenue"))
#: The first and the second part of a British post code.
_POST_CODE_START: Final = re.compile(r"[A-Z]{1,2}\d[A-Z\d]?")
_POST_CODE_END: Final = re.compile(r"\d[A-Z]{2}")

# The letters in addition to those of `_WORDS`: N is a number, Z a number that may be a post code, K and k the parts of
# a British post code, O an ordinal number, C a capitalized word, w another word, E a street name that is one word, ","
# a comma or the end of a line, # a number sign, and z anything else.
_NUMBER: Final = "[NZ]"
_NAME: Final = "[COFDP]"
_PARTS: Final = (
    # 9931 14 Iliou Street; 221b Baker St; 14 St. John Street NW
    rf"(?:{_NUMBER},?)?{_NUMBER},?[CODSM]{{0,3}}{_NAME}S{{1,2}}D?",
    # 66 gamla svedalavägen 75; Hauptstraße 12a
    rf"{_NUMBER},?[Cw]{{0,2}}E,?{_NUMBER}|E,?{_NUMBER}",
    # 7 rue Charles Corbeau; rue de la Sarthe 421; ul. Miła 53
    rf"{_NUMBER},?B(?:M{{0,2}}{_NAME}){{1,4}}(?:,?{_NUMBER})?",
    rf"(?:{_NUMBER},?)?B(?:M{{0,2}}{_NAME}){{1,4}},?{_NUMBER}",
    # 692 Kuuse 53 Apt. 641: there is no word for a street, but a word for an apartment
    rf"{_NUMBER},?[CODMS]{{1,4}},?{_NUMBER}(?=,{{0,2}}U#?{_NUMBER})",
    # PO Box 12; PSC 6293, Box 8158; FPO AE 25990; Suite 055
    rf"PX{_NUMBER}",
    rf"Q{_NUMBER},?X{_NUMBER}",
    r"F,?CZ",
    rf"U#?{_NUMBER}",
)
_PART: Final = f"(?:{'|'.join(_PARTS)})"
_TOWN: Final = r"(?:[CMSD]{1,4},{0,2}){0,3}"
_ADDRESS: Final = re.compile(
    rf"{_PART}(?:,{{0,2}}{_TOWN}{_PART})*(?:,{{0,2}}{_TOWN}(?:Zk?|Kk))?",
)


def find(unit: str) -> list[Finding]:
    if not any(character.isdigit() for character in unit):
        return []
    tokens = list(_TOKEN.finditer(unit))
    letters = "".join(_letter(token.group()) for token in tokens)
    return [
        Finding(tokens[match.start()].start(), tokens[match.end() - 1].end(), ENTITY, _SCORE, ENTITY)
        for match in _ADDRESS.finditer(letters)
    ]


def _letter(word: str) -> str:
    """Return the letter of the word's class."""
    if word in ",\n>":
        return ","
    if word[0].isdigit():
        return _letter_of_number(word)
    if not word[0].isalpha():
        return "#" if word == "#" else "z"
    bare = word.lower().rstrip(".")
    letter = _CLASS.get(bare)
    if letter and not (word[0].islower() and (bare in _CAPITAL_ONLY or letter == "D")):
        return letter
    if _ENDING.fullmatch(word):
        return "E"
    if _POST_CODE_START.fullmatch(word):
        return "K"
    return "C" if word[0].isupper() else "w"


def _letter_of_number(word: str) -> str:
    digits = re.split("[-/]", word, maxsplit=1)[0]
    if digits.isdigit():
        return "Z" if 4 <= len(digits) <= 5 else "N" if len(digits) < 7 else "z"
    if word.lower().endswith(("st", "nd", "rd", "th")):
        return "O"
    if _POST_CODE_END.fullmatch(word):
        return "k"
    return "N" if len(word) < 7 and digits[:-1].isdigit() else "z"
