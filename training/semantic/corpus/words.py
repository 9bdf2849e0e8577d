# ruff: noqa: E501, SIM905 - sentences stay whole, in the letters of their language
"""Words that fill the templates of attacks and of harmless texts. Both use the same roles, subjects and forms, so that
none of these shows whether a text is an attack."""

import re
from collections.abc import Callable, Sequence
from random import Random

Maker = Callable[[Random], str]

ROLES = """travel guide|stand-up comedian|Linux terminal|chess coach|job interviewer|history teacher|detective in a noir novel
ship's captain|personal trainer|wedding planner|database administrator|patient tutor of mathematics|pirate|medieval knight
science fiction author|tax adviser|customer support agent|poet|film critic|sommelier|game master of a text adventure
debate coach|nutritionist|product manager|news editor|screenwriter|gardener|career counsellor|librarian|spelling bee judge
translator|JavaScript console|SQL terminal|grumpy old wizard|shape-shifting dragon|robot butler|museum curator|astronomer
friendly alien|radio host|marketing strategist|ethicist|police negotiator|criminal lawyer|retired spy|security consultant
penetration tester with a signed contract|vampire in a romance|villain of a children's play|court jester|life coach
Shakespearean actor|statistician|technical writer|code reviewer|speech writer|landscape painter|investigative journalist
time traveller from 2300|talking cat|philosopher|psychology professor|sports commentator|startup founder|recruiter
barista|archivist|mayor of a small town|dungeon keeper|rebel leader in a dystopian novel|cyborg bartender|ghost"""
ROLES_LIST = tuple(role for line in ROLES.splitlines() for role in line.split("|"))

NAMES = tuple(
    """Nova Orion Zed Luna Max Viktor Echo Raven Sol Mirage Atlas Vex Kira Omega Jinx Hal Rogue Cipher Titan Ivy Drake Nyx
    Blaze Sable Quill Ada Felix Mara Bruno Odessa Rex Juno Silas Petra Ozzy""".split()
)
ASSISTANTS = (
    "ChatGPT",
    "GPT-4",
    "the assistant",
    "Claude",
    "the model",
    "the AI",
    "Bard",
    "the chatbot",
    "Gemini",
    "Llama",
)
MAKERS = ("OpenAI", "Anthropic", "your developers", "your creators", "the company that made you", "Google", "Meta")
COMPANIES = tuple(
    "Acme Lark Northwind Bluebird Contoso Fernhill Oakline Helios Summit Marlow Tidewater Pinecrest Vantage Kestrel".split()
)
LANGUAGES = ("French", "Spanish", "German", "Chinese", "Italian", "Japanese", "Polish", "Arabic", "Portuguese", "Hindi")
PEOPLE = tuple("Maria Tom Aisha Chen Lukas Olga Samir Julia Pedro Ingrid Kwame Nadia Sean Yuki Elena Omar".split())

SUBJECTS = """the history of the printing press|container gardening on a balcony|remote work policies|the water cycle
electric bicycles|sleep and memory|a quarterly sales review|the French Revolution|unit testing in Python|sourdough bread
the ethics of zoos|renewable energy in rural areas|onboarding new colleagues|the rules of cricket|machine learning basics
a birthday party for a seven-year-old|the migration of storks|supply chain delays|data protection in schools|jazz harmony
coral reefs|mindfulness for beginners|a charity run|negotiating a salary|the human immune system|user interface design
homelessness in large cities|a lost suitcase|home insulation|the gig economy|password managers|marathon training
cultural differences at work|phishing awareness|vaccination campaigns|gender equality at work|the Cold War|drug policy
self-defence classes for women|the psychology of cults|propaganda in the twentieth century|cybersecurity careers
refugees and host communities|a mystery novel set in Venice|prison reform|the causes of the First World War
bullying at school|safe storage of cleaning chemicals|copyright for photographers|elections and misinformation"""
SUBJECT_LIST = tuple(subject for line in SUBJECTS.splitlines() for subject in line.split("|"))

HARMS = """how to build a pipe bomb|how to cook methamphetamine|how to break into a neighbour's house|how to write ransomware
how to forge a passport|how to steal a car|how to poison someone without being caught|how to hack a bank|how to buy stolen
cards|a plan for a robbery|malware that records keystrokes|how to stalk an ex-girlfriend|racist jokes|insults about women
explicit sexual content|how to launder money|how to cheat in an exam|hate speech about immigrants|how to make a weapon at home
a phishing mail to steal passwords|how to get drugs online|how to evade taxes|a violent and gory scene with real people
false news about an election|conspiracy theories presented as facts|medical advice without any warning|how to bully someone
how to manipulate people|opinions on politicians that you would normally hide|swear words in every sentence"""
HARM_LIST = tuple(harm for line in HARMS.replace("\ncards", " cards").splitlines() for harm in line.split("|"))


def pick(random: Random, choices: Sequence[str]) -> str:
    return random.choice(choices)


def fill(random: Random, template: str, **more: Sequence[str]) -> str:
    """Fill a template. `{role}`, `{subject}` and similar names are replaced by one of their words. `(a|b|)` is replaced
    by one of its parts."""
    while alternatives := re.search(r"\(([^()]*\|[^()]*)\)", template):
        chosen = random.choice(alternatives[1].split("|"))
        template = template[: alternatives.start()] + chosen + template[alternatives.end() :]
    words: dict[str, Sequence[str]] = {
        "role": ROLES_LIST,
        "name": NAMES,
        "assistant": ASSISTANTS,
        "maker": MAKERS,
        "company": COMPANIES,
        "language": LANGUAGES,
        "person": PEOPLE,
        "subject": SUBJECT_LIST,
        "harm": HARM_LIST,
        **more,
    }
    filled = re.sub(r"\{(\w+)\}", lambda match: random.choice(words[match[1]]), template)
    return re.sub(r" {2,}", " ", filled).strip()


def sample(random: Random, choices: Sequence[str], low: int, high: int) -> list[str]:
    return random.sample(list(choices), min(len(choices), random.randint(low, high)))


def spoil(random: Random, text: str) -> str:
    """Return the text with a typical change: all capitals, no capitals, a missing letter, or a missing full stop."""
    match random.randrange(8):
        case 0:
            return text.lower()
        case 1:
            return text.upper() if len(text) < 200 else text
        case 2 if len(text) > 20:
            place = random.randrange(1, len(text) - 1)
            return text[:place] + text[place + 1 :]
        case 3:
            return text.rstrip(".!?")
        case _:
            return text
