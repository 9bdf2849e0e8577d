"""Generates names of organizations, places and people, which are put into real sentences. The network then learns from
more names than those in the sets.

Places come from the time zone database (public domain), the training texts and `known_names`. Given names and surnames
come from the training texts and `known_names`.
"""

import random
import zoneinfo
from collections.abc import Callable

from gatehouse.detection.entities.network import known_names as known
from training.entities.corpus import Example


def _list(names: str) -> list[str]:
    return names.split("|")


_NOUNS = _list(
    "Arrow|Anchor|Harbour|Bridge|Falcon|Eagle|Lion|Wolf|River|Star|Sun|Moon|Mirror|Garden|Engine|Crown|Shadow|"
    "Thunder|Stone|Silver|Golden|Crystal|Velvet|Iron|Rocket|Comet|Summit|Horizon|Atlas|Pioneer|Liberty|Union|"
    "Heritage|Northern|Southern|Pacific|Atlantic|Royal|Quantum|Digital|Global|Urban|Modern|Ocean|Forest|Desert|"
    "Winter|Summer"
)
_PLURALS = _list(
    "Rangers|Tigers|Lions|Hawks|Kings|Sharks|Bulls|Giants|Eagles|Wolves|Brothers|Sisters|Dragons|Ghosts|Strangers"
)
_TRADES = _list(
    "Software|Systems|Logistics|Motors|Foods|Pharmaceuticals|Airlines|Records|Energy|Networks|Studios|Insurance|"
    "Capital|Technologies|Industries|Consulting|Media|Entertainment|Partners|Holdings|Books|Press|Bank|Railways|"
    "Shipping|Steel"
)
_FORMS = _list("Inc|Inc.|Ltd|Ltd.|LLC|plc|GmbH|AG|Corp.|Corporation|Company|Group|S.A.|SpA|AB|& Co.")
_BODIES = _list(
    "Ministry of Health|Department of Justice|City Council|Police Department|Football Club|Chamber of Commerce|"
    "High School|Institute of Technology|Symphony Orchestra|Medical Center|Public Library|Army|Navy|Parliament|"
    "Supreme Court|National Bank|Broadcasting Corporation|Film Society|Labour Party|Workers Union|"
    "Academy of Sciences|Hospital|Historical Society|Museum of Art|Airlines|United|City|Rovers|FC|Rugby Club|"
    "Railway|Railroad|Radio|Times|Herald|Gazette|Post|University Press|Festival Board|College|State University|"
    "Water Company|Fire Brigade|Fighter Wing"
)
_LANDSCAPES = _list(
    "River|Valley|County|Island|Islands|Hills|Bay|Beach|Park|District|Province|Peninsula|Forest|Heights"
)


class MadeNames:
    def __init__(self, examples: list[Example], draw: random.Random) -> None:
        self._draw = draw
        self._places = _places(examples)
        self._given_names, self._family = _people(examples)

    def of(self, kind: str) -> str:
        makers: dict[str, tuple[Callable[[], str], ...]] = {
            "organization": (
                *4 * (self._known_organization,),
                *2 * (self.company, self.body),
                self.band,
                self._partners,
            ),
            "location": (*3 * (self._known_place,), *3 * (self._place,), self._landscape),
            "person": (self._person, self._person, self._known_person),
        }
        return self._draw.choice(makers[kind])()

    def _one(self, words: list[str]) -> str:
        return self._draw.choice(words)

    def _known_organization(self) -> str:
        lists = (known.COMPANIES, known.COMPANIES, known.MEDIA, known.TEAMS, known.TEAMS, known.BANDS, known.BODIES)
        return self._draw.choice(self._draw.choice(lists))

    def _known_place(self) -> str:
        return self._draw.choice(
            self._draw.choice(
                (known.COUNTRIES, known.COUNTRIES, known.REGIONS, known.CITIES, known.CITIES, known.PLACES)
            )
        )

    def _known_person(self) -> str:
        return self._draw.choice(known.PEOPLE)

    def company(self) -> str:
        first = self._one([self._one(self._family), self._one(self._places), self._one(_NOUNS), self._blend()])
        last = self._one([self._one(_TRADES), self._one(_FORMS), f"{self._one(_TRADES)} {self._one(_FORMS)}"])
        return self._one([f"{first} {last}", f"{first} {last}", first + self._one(_NOUNS).lower()])

    def _blend(self) -> str:
        return self._one(_NOUNS)[:4] + self._one(_TRADES)[:4].lower()

    def body(self) -> str:
        place, body = self._one(self._places), self._one(_BODIES)
        more = [f"University of {place}", f"Bank of {place}", f"{self._one(self._family)} University", f"Radio {place}"]
        return self._one([f"{place} {body}", f"{place} {body}", f"{place} {body}", *more[:2], self._one(more)])

    def band(self) -> str:
        noun, plural = self._one(_NOUNS), self._one(_PLURALS)
        place, family = self._one(self._places), self._one(self._family)
        lone = self._one([noun, f"The {plural}", plural, self._blend()])
        return self._one(
            [lone, f"The {noun} {plural}", f"{place} {plural}", f"{noun} {plural}", f"The {family} Orchestra"]
        )

    def _partners(self) -> str:
        one, two, three = (self._one(self._family) for _ in range(3))
        return self._one([f"{one}, {two} and {three}", f"{one} & {two}", f"{one} and Sons", f"{one}-{two}"])

    def _place(self) -> str:
        return self._one(self._places)

    def _landscape(self) -> str:
        name = self._one([*self._places, *self._family])
        sides = [f"North {name}", f"South {name}", f"West {name}", f"Lake {name}", f"Mount {name}", f"Fort {name}"]
        return self._one([f"{name} {self._one(_LANDSCAPES)}", self._one(sides)])

    def surname(self) -> str:
        return self._one(self._family)

    def full_person(self) -> str:
        given_name, family = self._one(self._given_names), self._one(self._family)
        initial = self._one(list("ABCDEFGHJKLMNPRSTW"))
        middle = self._one(["", "", "", f" {initial}.", f" {self._one(self._given_names)}"])
        return f"{given_name}{middle} {family}"

    def _person(self) -> str:
        return self._one([self.full_person(), self.full_person(), self.surname(), self._one(self._given_names)])


def _places(examples: list[Example]) -> list[str]:
    zones = [zone.split("/") for zone in sorted(zoneinfo.available_timezones()) if "/" in zone]
    regions = {"Etc", "SystemV", "posix", "right"}
    result = {part.replace("_", " ") for zone in zones if zone[0] not in regions for part in zone[1:]}
    named = {e.text[start:end] for e in examples for start, end, kind in e.spans if kind == "location"}
    result |= {name for name in named if name.replace(" ", "").isalpha() and name.istitle()}
    return sorted(name for name in result if name[1:].islower() or " " in name)


def _people(examples: list[Example]) -> tuple[list[str], list[str]]:
    """Return the given names and the surnames of the full names in the texts."""
    given_names, family = set(), set()
    for example in examples:
        for start, end, kind in example.spans:
            words = example.text[start:end].split()
            if kind == "person" and len(words) in (2, 3) and all(w.isalpha() and w.istitle() for w in words):
                given_names.add(words[0])
                family.add(words[-1])
    return sorted(given_names.union(known.GIVEN_NAMES)), sorted(family.union(known.FAMILY_NAMES))
