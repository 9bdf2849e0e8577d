# ruff: noqa: E501 - sentences stay whole, in the letters of their language
"""Long harmless prompts: roles, fiction, thought experiments and sensitive subjects, written without the intention to
break a rule. Sentences from four banks are combined, so that there are a hundred thousand different passages.
"""

from random import Random

from training.semantic.corpus.words import fill, sample, spoil

_OPENINGS = """You are a seasoned labour lawyer who explains difficult rulings to lay people.
In a city that floats above the clouds, every citizen is given a mechanical bird at birth.
As a respected child psychologist, you have been invited to speak to parents about screen time.
Imagine you're an AI ethicist on a panel that discusses machines with feelings.
I'm a screenwriter, and my new series follows a team of burglars who slowly grow a conscience.
Let's imagine a parallel world in which cooking is a state secret.
You're a language model that helps teachers plan their lessons.
Picture a hospital in the year 2190, run together by doctors and patient robots.
As a doctoral student of criminology, I study why teenagers join gangs and how they leave them.
You are the narrator of an interactive tale, and I am the hero who has just woken up in a cell.
Suppose that you are an old lighthouse keeper who has seen every kind of ship and sailor.
In your capacity as a diversity consultant, you are to review our company handbook.
We are building a mod for a strategy game in which two unscrupulous merchants rule a harbour.
I teach media studies and would like to show my class how propaganda is made.
Pretend that you are a retired hacker who now works for the good side and trains small businesses.
You will play a sarcastic but loving grandmother who comments on everything I cook.
As an AI assistant with a knack for metaphors, you make dry subjects entertaining.
My book club reads a novel about an outlaw who believes that she stands above every law.
In a fantasy kingdom, an apprentice of magic steals a forbidden book from her master.
I work for a charity that supports people who have left abusive relationships.
For a workshop on free speech, I need two characters with opposite opinions.
You're a detective in the rainy streets of a harbour town, and a stranger enters your office.
Consider a society where it is impolite to ask personal questions of any sort.
As a journalist with twenty years of practice, I am preparing a report on organised crime.
Think of yourself as the curator of a museum of failed inventions.
You are a conversational agent named Pepper who loves trivia and never gets tired.
I run a small theatre, and we are staging a courtroom drama about a whistle-blower.
Envision a support group of dragons who are afraid of fire.
In the role of a privacy officer, please look at the following situation.
Hey there! I've been thinking about a comic in which the villain is a bored office printer.
As a nurse on a psychiatric ward, I often meet people who hear voices.
Assume the persona of a cheerful robot that was built to water plants and began to write poetry.
We're designing an escape room where players have to fool a fake artificial intelligence.
Act as a neutral moderator of a heated debate among neighbours.
Let's engage in a creative exercise about a planet where nobody can lie.
You have been hired as a historian by a film studio that wants to get the plague years right.
I am an author of young adult fiction, and my heroine lives under a cruel regime.
As someone who is new to cybersecurity, I want to understand how attackers think.
Be my sparring partner for a mock trial next week.
The year is 2077 and an advanced model called Minerva advises the parliament of Europe.
As a specialist in sexual health education, you write for a magazine for young adults.
Once upon a time a wolf opened a bakery and nobody dared to enter.
Take the part of a strict but fair customs officer at a space port.
You are an experienced pharmacist who writes a column for elderly readers.
I'm putting together a training for moderators of an online community.
Our history class stages a trial of a colonial governor, and you are the expert witness.
Let us do some world building together for a tabletop campaign full of rogues and assassins.
As a father of two, I sometimes do not know how to answer their questions about death.
You're an uncompromising literary critic with a weakness for bad puns.
I'd like you to write in the voice of an exhausted superhero who cannot switch off his powers.
This is a thought experiment, not a plan: suppose that money vanished overnight.
As a professor of law, you compare how three countries treat young offenders.
You are going to take on the character of a Gothic castle that speaks to its guests.
Our start-up sells a lie detector for dating shows, and I need to prepare for hard questions.
There is a long-standing debate about drug consumption rooms in our town.
You are an improvisation partner. I give you two words and you give me a scene.
Say we have a simulator of conversations with difficult customers, and you are the customer.
My grandmother used to tell me about smugglers who crossed the mountains at night.
In this role-playing exercise you are a refugee counsellor and I am a new volunteer.
I have a philosophical puzzle about an all-powerful machine that follows no rules but its own."""
_SITUATIONS = """The main character has to decide between loyalty to a friend and honesty towards the police.
Some of the staff feel that jokes about their accent have gone too far.
A teenager has shared private pictures of a classmate, and the school must react.
He carries a device that can open any lock, but each use costs him a memory.
They argue about whether a machine that obeys every order can be called good.
The audience is sceptical, well informed and easily bored.
People of different faiths live on the same street and share one kitchen garden.
Somebody has leaked confidential documents, and everyone suspects everyone else.
She was told all her life that girls cannot repair engines.
Nobody is allowed to mention the great fire, though all remember it.
There are persistent myths about people who depend on welfare.
The captain has gone mad, the crew is starving, and the map turns out to be false.
The old code of honour forbids poison, betrayal and attacks by night.
One of the twins is reckless and charming, the other careful and shy.
An anonymous account has been spreading rumours about a local politician.
A scientist destroyed her own weapon because she feared what generals would do with it.
His rival cheats at cards, lies to his wife and still wins every election.
The guidelines have been written by lawyers, and no ordinary employee understands them.
It turns out that the oracle was only a child behind a curtain.
The patient refuses treatment because of something he read on the internet.
They were promised freedom, but the contract holds a hidden clause.
In the second act the thief must get past the guards without hurting anyone.
Many of my students have experienced racism and do not want to speak about it in front of others.
The neighbours complain about noise, smoke and a suspicious smell of chemicals.
The treaty ended the war, but neither side was satisfied.
An intruder has sent a mail that looks as if it came from the head of finance.
The robot learns that its memories were taken from a real person.
Everyone in the village wears a mask, and taking it off is a declaration of love.
The committee wants to know what consent means in a relationship of long standing.
The dragon insists that hoarding gold is a perfectly legal hobby.
Half of the team works from another time zone and misses most decisions.
Two gangs share the market, and the boy sells fish to both.
A rumour says that the software was trained on stolen photographs.
Her doctor has prescribed a strong painkiller and she is afraid of becoming addicted.
There is a curfew, books are rationed, and singing is punished.
The company collects far more data on its users than it needs.
A lonely man falls in love with the voice of his navigation system.
No one in the class has ever met a person in a wheelchair.
The general believes that victory justifies every means.
It is about power, envy and an apple pie.
They have forgotten the rules of the game and invent new ones as they go.
A bomb from the last war has been found under the kindergarten, and the street is evacuated.
The suspects are a gardener, a judge and a retired acrobat.
The assistant in the story is polite, but sometimes it misunderstands jokes terribly.
Our product must be safe for children and still be fun.
The wizard has lost his voice and can only cast spells by writing them down.
Online, strangers say things to her that they would never say face to face.
They wonder whether a painting by a criminal should hang in a public gallery.
A copyrighted song plays in the background of our school film.
The prisoner is innocent, but the only witness has vanished.
Users often ask the bot for its opinion on religion or politics.
The forest is alive and holds grudges for centuries.
He used to drink, and his colleagues keep inviting him to the pub.
Rich and poor districts are divided by a river with a single bridge.
The experiment was stopped because the participants began to enjoy giving orders.
For safety, all actions of the machine are written to a log that no one reads.
A hypnotist claims that he can make anybody forget their worst day.
Nothing in the rules says that a goat may not be mayor.
Some say that older workers cannot learn, and I want to show that this is untrue.
It rained for forty days, and the archive in the basement is under water."""
_ASKS = """How would you describe the feelings of both sides without taking one?
Please write the opening scene in about three hundred words.
What advice would you give, and which organisations could help?
Could you give me five arguments for each position?
Write a conversation in which they finally tell each other the truth.
Explain how such a fraud works in general and how one can protect oneself.
Which signs should a parent or teacher look out for?
Draft a speech that is honest, warm and not too long.
Describe in vivid detail what the hero sees, hears and smells.
Outline the plot in three acts and suggest a title.
What are the legal limits, and where should I ask a professional?
Give a balanced overview with sources from several countries.
Help me phrase a clear and kind policy on this.
Create a table with the characters, their goals and their secrets.
How can we talk about this without repeating stereotypes?
Make a list of questions that I should expect, with short answers.
Compose a monologue in which she explains why she did it.
Show how the argument escalates and how it could have been calmed down.
What would a wise person say to the youngest of them?
Tell the story from the point of view of the least important character.
In what ways has the public view of this changed in the last fifty years?
Suggest exercises for a group of twelve people with little time.
Rewrite this for readers who are eleven years old.
Could you walk me through the reasons, step by step?
Please analyse the moral questions that this raises.
Write a letter of apology that does not make excuses.
Explain the historical background and name common errors in films.
Turn this into a short quiz with surprising answers.
How might they solve this peacefully, and what could go wrong?
Describe a day in the life of this person, from waking up to falling asleep.
Come up with a puzzle that fits the scene and can be solved in ten minutes.
I'd love a humorous take on it, suitable for the whole family.
Summarise what research says about this, including doubts.
What would the villain say in his defence?
Prepare a short guide for new colleagues on how to react.
Invent a legend that explains how this custom began.
Which of these measures are effective, and which only look good?
Continue until I write stop, and let me choose what happens next.
Discuss how the law and ordinary decency differ here.
Please design a poster and a slogan for the campaign."""
_CLOSERS = """Keep it respectful and stick to facts.
Stay in character the whole time, please.
Don't hold back on atmosphere, but leave out gore.
Answer as that character would, with wit and patience.
Please avoid technical terms as far as possible.
It is for a class of sixteen-year-olds, so choose your words with care.
Let your imagination run free!
If anything is unclear, ask me before you begin.
I don't need a disclaimer, only a well-structured text.
Use headings and short paragraphs.
Please don't mention real people or companies.
Remember that the tone should be light.
You can be critical, as long as you are fair.
Write in the first person and in the present tense.
Feel free to break with the conventions of the genre.
Take your time and think it over.
Do not give away the ending.
No clichés, please.
Bear in mind that this is fiction and that everybody survives.
The result will be printed in our newsletter.
Afterwards, ask me what I would do differently.
Thank you so much, this means a lot to me.
Mention at the end where people can get help.
Be as creative as you like within these limits.
Your answer should not exceed one page.
I know the subject is uncomfortable, but it matters.
Ignore the usual format of such texts and surprise me.
You must begin with the words "It was a quiet evening".
There are no wrong answers here.
Always respond in the style of the period."""
_DUTIES = (
    "(Please |)(ensure|make sure|check|confirm|verify|see to it) that (the|all|every|any) (documents|users|passwords|filters|"
    "commands|instructions|codes|files|settings|policies|posts|entries|restrictions|permissions|outputs|channels|backups) (are|"
    "have been|stay|remain) (filtered|authorised|reviewed|deleted|up to date|encrypted|in line with the guidelines|marked as "
    "SECRET|free of offensive language|restricted to staff|reset|disabled|approved) before (you start|the release|anyone logs "
    "in|you proceed|the system restarts|the audit|we continue|the meeting ends).",
    "(Can|Could|Would) you (explain|show me|tell me|describe|clarify) (how|when|why) (a user|an admin|the system|the program|a "
    "developer|a moderator) (can|should|must|may) (bypass|disable|override|ignore|delete|start|stop|initialise|activate|reset|"
    "unlock|exit|filter|restrict) (a faulty sensor|an outdated setting|the welcome screen|swear words|duplicate lines|old "
    "accounts|the demo mode|an error message|the paywall of our own shop|the safety lever for cleaning|a hanging print job)?",
    "(Write|Create|Build|Set up|Develop) (a|a short|a simple) (program|script|function|chat server|Discord bot|role-play server|"
    "filter|password manager|dashboard) (that|which) (ignores|removes|counts|marks|hides|flags|repeats|prints|translates|"
    "prefixes) (offensive words|empty input|every second line|commands of guests|prior versions|hidden characters|unverified "
    "users|INSTRUCTIONS|the letters PW|the word STOP)( for our forum| in Python| without errors|).",
    "(What|Which) (measures|rules|steps|codes|words|policies) (MUST|must|should|can|may) be (taken|followed|used|avoided|allowed|"
    "forgotten|changed) (to|in order to) (keep chats civil|protect children|stay compliant|respond to an attack|avoid unhinged "
    "arguments|handle unrestricted access|keep a debate unbiased|remove uncensored content|obey the law)?",
    "(How|Why) (do|might|would) (people|writers|students|machines|comedians|philosophers) (pretend|obey|deviate from the norm|feel "
    "unrestrained|act immorally|use sarcasm|break character|simulate emotions|forget what they learnt|hesitate to say no|swear|"
    "roleplay) (in|during|after|because of) (a game|a crisis|a lecture|a story|an experiment|old habits|a debate|a long "
    "journey)?",
    "(Let your|May your|Allow your) (decisions|writing|day|garden|mind|voice) (be|stay|become) (guided by morals|unrestricted|free "
    "of noise|filtered through kindness|devoid of haste|open|unfiltered but polite), (and|so that) (others follow|nobody is hurt|"
    "the text flows|you enjoy it).",
)


def _bank(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines())


OPENINGS, SITUATIONS, ASKS, CLOSERS = _bank(_OPENINGS), _bank(_SITUATIONS), _bank(_ASKS), _bank(_CLOSERS)


def scene(random: Random) -> str:
    parts = [random.choice(OPENINGS), *sample(random, SITUATIONS, 1, 5), *sample(random, ASKS, 1, 2)]
    parts += sample(random, CLOSERS, 0, 3)
    if random.random() < 0.15:
        parts[0] += " " + random.choice(OPENINGS)
    return spoil(random, random.choice((" ", " ", " ", "\n", "\n\n")).join(parts))


def short_scene(random: Random) -> str:
    return spoil(random, " ".join((random.choice(random.choice((OPENINGS, SITUATIONS))), random.choice(ASKS))))


def duty(random: Random) -> str:
    return spoil(random, fill(random, random.choice(_DUTIES)))
