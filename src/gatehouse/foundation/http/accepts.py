"""Content negotiation between HTML and JSON (RFC 9110, 12.5.1)."""


def prefers_html(accept: str) -> bool:
    """Returns whether a client with this `Accept` header prefers HTML to JSON. Browsers accept HTML; programs accept
    JSON or `*/*`, or send no header."""
    weights = [_weight(part) for part in accept.lower().split(",")]
    return _quality(weights, "text/html") > _quality(weights, "application/json")


def _quality(weights: list[tuple[str, float]], media_type: str) -> float:
    """Returns the weight of the most specific media range that matches `media_type`, or 0 if none matches."""
    for media_range in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        matches = [weight for name, weight in weights if name == media_range]
        if matches:
            return max(matches)
    return 0.0


def _weight(part: str) -> tuple[str, float]:
    name, *parameters = (item.strip() for item in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0
