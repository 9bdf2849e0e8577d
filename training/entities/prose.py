"""Generates sentences of encyclopedias, news, letters, tickets and prompts, which the sets do not have, and of posts
and chat.

There are few of them compared with the real texts. They teach a convention: the name of a work, an event, a people or a
product is not the name of a person, organization or place, although it is capitalized.

Slots: {P} person, {A} person by any name, {F} surname, {L} place, {O} organization, {C} company, {B} body, {G} team or
band; without a label {T} work, {E} event, {N} people, {M} product, {Y} year, {J} job, {D} day, {H} handle. A # makes a
hashtag of the name.
"""

import random
import re

from training.entities.corpus import HANDLE, Example
from training.entities.made_names import MadeNames

_TEMPLATES = """
{P} (born {D} {Y} in {L}) is a {N} {J} and former {J}.
{P} was a {N} {J} who served in {L} during the {E}.
{P} studied at {B} and later moved to {L}, where {F} worked for {C}.
{G} are a {N} rock band from {L}, formed in {Y} by {P} and {P}.
{G} released their second album, {T}, in {Y}; it was recorded in {L} with {P} as producer.
The single "{T}" was covered by {G} and by {P} on the album {T}.
In {Y} {P} left {G} and was replaced by {P}.
{T} is a {Y} {N} film directed by {P} and starring {P} and {P}.
{T} is a novel by {P}, first published by {C} in {Y}.
The film was shot in {L} and {L}; {F} wrote the script with {P}.
The song reached number {Y} on the {N} charts and was used in the film {T}.
{L} is a town in the {N} province of {L}, on the border with {L}.
{L} lies about 20 km north of {L} and is crossed by the {L}.
The village of {L} belonged to {L} until {Y}, when it became part of {L}.
The railway from {L} to {L} was built by {C} in {Y}.
{C} operates lines between {L}, {L} and {L} under a contract with {B}.
{C} is a {N} company with headquarters in {L}; it was founded by {P} in {Y} and bought by {C}.
In {Y} {C} merged with {C}, and {P} became its chairman.
The {M} was built by {C} and sold by {C} in {L} under the name {M}.
The {M} and the {M} use the same engine as the {M} of {Y}.
{B} was opened in {Y} and has about 12,000 students, most of them from {L}.
He taught at {B} in {L} and at {B}, and was a member of {B}.
The building was given to {B} by the family of {P}.
After the {E} the {N} army withdrew from {L} to {L}.
During the {E}, general {F} led the troops of {L} against {L}.
The {E} was fought near {L} in {Y} between the forces of {P} and those of {P}.
{G} beat {G} 3-1 in the final of the {E} at {L}.
{P} played for {G}, {G} and the {N} national team, and later coached {G}.
In {Y} he was traded from {G} to {G} for {P}.
She won the {E} in {Y} and the {E} two years later.
{P} was elected to {B} in {Y} as a candidate of {B}.
The {N} government asked {B} and {B} for a report on the {E}.
{N} and {N} settlers came to {L} in the {Y}s.
The {N} language is spoken in {L}, {L} and parts of {L}.
The species was first described by {F} in {Y} from specimens of {L}.
The river {L} rises near {L} and flows through {L} into the {L}.
{O} received the {E} Award for {T}.
The show was broadcast by {B} and later by {C}.
{P}, known as {F}, is a character in the series {T}, played by {P}.
According to {O}, {P} and {P} of {O} had met in {L} before.
{F} married {P}, a daughter of {P}, in {L}.
The programme {T} was presented by {P} for {B} from {Y} until {Y}.
{L} ({N}: {L}) is the capital of {L}.
{P} of {B} said the {E} would not take place in {L} this year.
{L} - Shares of {C} fell on {D} after {C} said it would close its plant in {L}.
{C} named {P} as chief executive on {D}, replacing {P}, who joins {C}.
Police in {L} arrested a {N} man on {D}, a spokesman for {B} said.
Dear {P}, thank you for your order of the {M}; it leaves our store in {L} on {D}.
Dear Mr. {F}, your meeting with {P} of {C} has been moved to {D}.
Dear Ms. {F}, we have forwarded your claim to {C} in {L}.
Hi {P}, could you send the {M} figures to {P} at {C} before {D}? Thanks, {P}
Best regards, {P}, {J}, {C}, {L}
From: {P} To: {P} Subject: {E}
Customer {P} from {L} reports that {M} does not start since the update to {M}.
Ticket: {P} ({C}) cannot log in to the {M}; asked {P} to check.
Patient {P}, seen by Dr. {F} at {B}, was referred to {B} in {L}.
The agreement between {C} and {C} is governed by the laws of {L}.
This contract is made between {P}, residing in {L}, and {C}, a company registered in {L}.
{P} has worked as a {J} at {C} since {Y}; before that she was a {J} with {B}.
Experience: {J}, {C}, {L}, {Y} to {Y}; {J}, {B}, {Y}.
Write a letter to {P} at {C} that explains why the delivery to {L} is late.
Summarize the following message from {P} to the board of {C}.
Translate this {N} text for our office in {L} and send it to {P}.
What did {P} say about the {E} when he visited {L}?
Write a Python function that reads the {M} file and sorts the rows by Name and Date.
Please book a flight from {L} to {L} for {P} and {P} on {D}.
my boss {P} wants the report on {C} by {D}, can you draft it?
The {J} told us on {D} that the {M} is late. Nobody knows why.
Chapter Two: The {T}. Introduction. Further Reading. See also: {T}.
Table 3 shows the Results of the {E} for Group A and Group B.
Our {D} offer: {M}, now with Free Shipping and Easy Returns!
""".strip().splitlines()
_POSTS = """
RT @{H}: {A} says {O} will never win in {L} again #fail
@{H} are you going to see {G} in {L} on {D}?? I cant wait!!
{O} fans are the worst lol
Watching {O} v {O} with {A} and a beer
Just landed in {L}, so tired. {A} is picking me up
I'm at {L} (w/ @{H} and 3 others)
{A} is trending? RIP {A}
happy birthday {A}!!! love u
so {A} told me that {A} quit her job at {O} haha
Can't believe {A} is leaving {O} :( worst day ever
Breaking: at least {Y} killed in {L}, {O} reports
#{L} update: {A} meets {A} in {L} | {O}
New blog post: how {O} lost to {O} in {L} http://t.co/x{Y}
{O} to cut {Y} jobs in {L} - via @{H}
Now playing: {G} - {T} #nowplaying
Go {O}! #{O} #{L}
Why is everyone in #{L} talking about {A} today
Good morning {L}! Who is coming to {T} tonight?
Traffic on the bridge near {L} is a nightmare this {D}
My {M} broke again and {O} support is useless @{H}
got my new {M} today, bye bye {M}
I liked a YouTube video from @{H} {T} official trailer
Vote {O}! {A} for {L}
Thoughts with everyone in {L} tonight.
{A}'s new single is better than anything {A} ever did
{A} and {A} at the {E} red carpet
Anyone from {L} selling tickets for {G} on {D}?
ok but {A} was SO good in {T} last nite
Snow in {L} again... Mom says school is closed
God I hate Mondays. Happy Friday everyone! TGIF
The Game is on, who is watching? GOAL!!!
Thanks for the follow! Check out our new Album, link in bio
hey {A}, whats up? u coming to {L} this weekend
lol {A} just texted me from {L}, she met {A} at the {O} store
can you write an email to {A} at {O} saying im sick
need a summary of what {O} and {O} agreed on in {L}
job opening: {J} at {O} in {L}, apply by {D}
{L}: {A} ({O}) arrested after fight outside club
{O}'s {A} out for the season, says coach {F}
Photo: {A}, {L}, {Y}. Credit: {P} / {O}
#{A} #{A} #concert #live
""".strip().splitlines()
#: Lines of programs, mails and documents without a name of a person, organization or place.
_TECHNICAL = """
kubectl -n staging get pods | grep Running
git commit -m "Fix typo in README and bump Version"
Merge pull request #{Y} from feature/{W}
Subject: Re: [PATCH] {W}: do not round to {Y}
Received: by mx3.example.org with ESMTPS id 8F2A; {D}
{"id": {Y}, "status": "Pending", "currency": "EUR", "items": []}
SELECT Name, City, Total FROM Orders WHERE Id = {Y};
public class {W}Service extends Base{W} implements Runnable {
def test_{W}_is_sorted(self) -> None:
Traceback: ValueError: Invalid Value at Line {Y}
Error: Connection Refused. Retry in {Y} ms
{M} {Y}.3.1 to {Y}.4.0: Breaking Changes
## Getting Started
# Frequently Asked Questions and Known Issues
Table of Contents, Introduction, Terms and Conditions, Privacy Policy
Step 1: Open the Settings Menu and Click Save
| Name | Role | Status | Last Update |
- [ ] Write Unit Tests for the Parser
apiVersion: apps/v1, kind: Deployment, metadata: {W}-{Y}
const MAX_RETRIES = {Y}; export default {W}Client;
""".strip().splitlines()

_NATIONS = (
    "American British English German French Spanish Italian Polish Dutch Russian Australian Canadian Indian Chinese "
    "Japanese Korean Swedish Norwegian Danish Finnish Irish Scottish Welsh Austrian Swiss Belgian Greek Turkish "
    "Hungarian Czech Romanian Bulgarian Serbian Croatian Ukrainian Portuguese Brazilian Mexican Argentine Chilean "
    "Peruvian Cuban African Asian European Egyptian Nigerian Kenyan Ethiopian Israeli Iranian Iraqi Syrian Arab Thai "
    "Vietnamese Indonesian Malaysian Filipino Goan Bengali Tamil Catalan Basque Roman Jewish Christian Muslim"
)
_JOBS = (
    "singer|politician|footballer|writer|actress|engineer|painter|sales manager|nurse|professor|goalkeeper|drummer|"
    "composer|lawyer|journalist|bishop|general|accountant|analyst|photographer|historian|director|swimmer"
)
_EVENTS = (
    "World Cup|Civil War|First World War|Second World War|Battle of {L}|Siege of {L}|Treaty of {L}|{L} Grand Prix|"
    "{L} Open|Olympic Games|{L} Festival|Champions League|Great Depression|{N} Revolution|{L} Marathon|Grammy|Cold War|"
    "Super Bowl|{F} Cup|Annual Meeting|Spring Conference|Act of {Y}|{F} Prize"
)
_WORKS = (
    "The {W} {W}|{W} of the {W}|{W} and {W}|The {W}|{W} in {L}|My {W}|A {W} for {W}|Return to {L}|The {F} Story|"
    "Songs of {W}|{W} Nights|The Last {W}|{W} {Y}"
)
_WORDS = (
    "Silver Winter Dream Fire Love Night Dance Shadow River Garden Letter Secret Summer Heart Mirror Storm Road Moon "
    "House Island Stranger Morning King Queen Machine Ghost Star Window Voice Bridge Time Blood Rain"
)
_PRODUCTS = "{W}{W}|{W} 300|{W} Pro|{W}-{Y}|Model {Y}|{W} XL|Type 4|CX-9|{W} Phone|{W} Cloud|A320|T-34|{W} One"
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|3 May|June 12|October 5th|12 January|Sunday|March 30"
_SLOT = re.compile(r"\{([A-Z])\}")
_KINDS = {"P": "person", "A": "person", "F": "person", "L": "location", "O": "organization", "C": "organization"}
_KINDS |= {"B": "organization", "G": "organization"}


class Prose:
    def __init__(self, names: MadeNames, draw: random.Random) -> None:
        self._names = names
        self._draw = draw

    def sentences(self, count: int) -> list[Example]:
        return [self._filled(self._draw.choice(_TEMPLATES + _POSTS + _TECHNICAL)) for _ in range(count)]

    def _filled(self, template: str) -> Example:
        text, at, spans = "", 0, []
        for slot in _SLOT.finditer(template):
            text += template[at : slot.start()]
            value = self._value(slot[1])
            start = len(text)
            if text.endswith("#"):
                value, start = "".join(filter(str.isalnum, value)), start - 1
            if slot[1] in _KINDS:
                spans.append((start, len(text) + len(value), _KINDS[slot[1]]))
            text += value
            at = slot.end()
        text += template[at:]
        return Example(text, "made-up", "made-up", spans, [handle.span() for handle in HANDLE.finditer(text)])

    def _value(self, slot: str) -> str:
        match slot:
            case "P":
                return self._names.full_person()
            case "A":
                return self._names.of("person")
            case "H":
                return self._names.surname().replace(" ", "_") + self._draw.choice(["", "91", "_x", "News"])
            case "F":
                return self._names.surname()
            case "L":
                return self._names.of("location")
            case "O":
                return self._names.of("organization")
            case "C":
                return self._names.company()
            case "B":
                return self._names.body()
            case "G":
                return self._names.band()
            case "Y":
                return str(self._draw.randint(1750, 2024))
            case "N":
                return self._draw.choice(_NATIONS.split())
            case "W":
                return self._draw.choice(_WORDS.split())
        lists = {"T": _WORKS, "E": _EVENTS, "M": _PRODUCTS, "D": _DAYS, "J": _JOBS}
        return _SLOT.sub(lambda inner: self._value(inner[1]), self._draw.choice(lists[slot].split("|")))
