"""Computes tables from samples: medians, ratios to the other gateways in the same run, and the goals."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

#: maps a gateway and a metric to the median
Figures = dict[str, dict[str, float]]
OURS = "gatehouse"


#: share of its core above which the gateway, and not the load, limits the throughput
BUSY = 0.9


@dataclass(frozen=True)
class Row:
    """A line of the table. `show` formats a figure. `better` is `less` or `more`, or empty if a ratio is meaningless.

    `busy` is the metric that shows whether the gateway's core was the limit. If it was not, the figure is a lower
    bound."""

    title: str
    value: Callable[[dict[str, float], dict[str, float]], float]
    show: str = "{:,.0f}"
    better: str = "less"
    busy: str | None = None

    def cell(self, own: dict[str, float], direct: dict[str, float]) -> str:
        value = _cell(self, own, direct)
        if value is None:
            return "-"
        floor = self.busy is not None and 0 < own.get(self.busy, 0) < BUSY
        return (">= " if floor else "") + self.show.format(value)


def _own(metric: str) -> Callable[[dict[str, float], dict[str, float]], float]:
    return lambda own, _direct: own[metric]


def _added(metric: str) -> Callable[[dict[str, float], dict[str, float]], float]:
    """Return a function that computes the milliseconds that a gateway adds to a direct request."""
    return lambda own, direct: (own[metric] - direct[metric]) / 1000


def _percent(metric: str) -> Callable[[dict[str, float], dict[str, float]], float]:
    return lambda own, _direct: own[metric] * 100


ROWS = (
    Row("CPU per request, 64 connections (us)", _own("cpu_us"), "{:,.1f}"),
    Row("... additional CPU of recording (us)", _own("recording_cpu_us"), "{:,.1f}", better=""),
    Row("CPU per request, 64 connections, provider takes 60 ms (us)", _own("slow_cpu_us"), "{:,.1f}"),
    Row("requests/s, 64 connections", _own("requests_s"), better="more", busy="busy"),
    Row("... sustained without a growing backlog", _own("sustained_s"), better=""),
    Row("added latency, 1 connection, p50 (ms)", _added("p50_us_1"), "{:,.3f}"),
    Row("added latency, 1 connection, p99 (ms)", _added("p99_us_1"), "{:,.3f}"),
    Row("added latency, 16 connections, p50 (ms)", _added("p50_us_16"), "{:,.3f}"),
    Row("added latency, 16 connections, p99 (ms)", _added("p99_us_16"), "{:,.3f}"),
    Row("streams of 50 chunks/s, 16 connections", _own("streams_s"), better="more", busy="stream_busy"),
    Row("CPU per stream of 50 chunks (us)", _own("stream_cpu_us"), "{:,.0f}"),
    Row("memory idle (MiB)", _own("idle_mib"), "{:,.1f}"),
    Row("memory after the soak (MiB)", _own("late_mib"), "{:,.1f}"),
    Row("... requests of the soak", _own("late_requests"), better=""),
    Row("... growth after its first tenth (%)", _percent("growth"), "{:+.1f}", better=""),
    Row("memory at the peak of concurrent streams (MiB)", _own("streams_mib"), "{:,.1f}"),
    Row("... streams open at that peak", _own("streams_open"), better=""),
    Row("additional memory of recording (MiB)", _own("recording_mib"), "{:,.1f}", better=""),
    Row("share of the core that the gateway used, requests (%)", lambda own, _: own["busy"] * 100, better=""),
    Row(
        "share of the core that the gateway used, streams (%)",
        lambda own, _: own["stream_busy"] * 100,
        better="",
    ),
    Row("share of that core that other processes used (%)", lambda own, _: own["foreign"] * 100, better=""),
)


def medians(samples: dict[str, list[dict[str, float]]]) -> Figures:
    """Return the median of each metric over the rounds. A metric that no round has is left out."""
    figures: Figures = {}
    for name, rounds in samples.items():
        metrics = {metric for one in rounds for metric in one}
        figures[name] = {m: statistics.median(one[m] for one in rounds if m in one) for m in sorted(metrics)}
    return figures


def _cell(row: Row, own: dict[str, float], direct: dict[str, float]) -> float | None:
    try:
        return row.value(own, direct)
    except KeyError:
        return None


def _table(header: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[at]) for line in [header, *lines]) for at in range(len(header))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if at == 0 else ":") for at, w in enumerate(widths)) + "|"
    return "\n".join([line(header), rule, *map(line, lines)])


def table(figures: Figures) -> str:
    """Return a table with all figures of all gateways."""
    direct = figures.get("direct", {})
    lines = []
    for row in ROWS:
        cells = [row.cell(own, direct) for own in figures.values()]
        if set(cells) != {"-"}:
            lines.append([row.title, *cells])
    return _table(["", *figures], lines)


def plain_table(figures: Figures) -> str:
    """Return a table with the metrics, named as in the samples."""
    metrics = list(dict.fromkeys(metric for own in figures.values() for metric in own))
    lines = [[m, *(f"{own[m]:,.4g}" if m in own else "-" for own in figures.values())] for m in metrics]
    return _table(["", *figures], lines)


def ratios(figures: Figures) -> str:
    """Return the factors by which each other gateway is worse than Gatehouse, or than nginx if Gatehouse is not in the
    run."""
    base = OURS if OURS in figures else "nginx"
    direct, own = figures.get("direct", {}), figures.get(base)
    peers = [name for name in figures if name not in (base, "direct")]
    if own is None or not peers:
        return ""
    lines = []
    for row in ROWS:
        ours = _cell(row, own, direct)
        if not row.better or not ours or ours < 0:
            continue
        cells = [_factor(row.better, ours, _cell(row, figures[name], direct)) for name in peers]
        lines.append([row.title, *cells])
    return _table([f"times worse than {base}", *peers], lines) if lines else ""


def _factor(better: str, ours: float, theirs: float | None) -> str:
    if theirs is None or theirs <= 0:
        return "-"
    factor = theirs / ours if better == "less" else ours / theirs
    return f"{factor:,.0f}" if factor >= 20 else f"{factor:.1f}" if factor >= 2 else f"{factor:.2f}"


@dataclass(frozen=True)
class Goal:
    title: str
    reached: float
    #: the minimum if `least` is true, otherwise the maximum
    target: float
    least: bool = False

    @property
    def met(self) -> bool:
        return self.reached >= self.target if self.least else self.reached <= self.target

    def line(self) -> str:
        sign, word = ("at least" if self.least else "at most"), ("met" if self.met else "MISSED")
        return f"{word:6}  {self.title}: {self.reached:,.4g} (target: {sign} {self.target:,g})"


def goals(figures: Figures) -> list[Goal]:
    """Return the goals that this run can check."""
    own, direct = figures.get(OURS), figures.get("direct", {})
    if own is None:
        return []
    nginx, litellm, portkey = (figures.get(name, {}) for name in ("nginx", "litellm", "portkey"))
    inspecting = figures.get("inspecting", {})
    results: list[Goal] = []

    def goal(title: str, reached: Callable[[], float], target: float, *, least: bool = False) -> None:
        try:
            results.append(Goal(title, reached(), target, least))
        except (KeyError, ZeroDivisionError):
            return

    def over_nginx(metric: str) -> float:
        return own[metric] - nginx.get(metric, direct[metric])

    goal("CPU per request, 64 connections, us", lambda: own["cpu_us"], 45)
    goal("... ratio to nginx", lambda: own["cpu_us"] / nginx["cpu_us"], 4.5)
    goal("LiteLLM's CPU per request, ratio to Gatehouse", lambda: litellm["cpu_us"] / own["cpu_us"], 40, least=True)
    goal("Portkey's CPU per request, ratio to Gatehouse", lambda: portkey["cpu_us"] / own["cpu_us"], 5, least=True)
    goal("CPU per request with 76 patterns, us", lambda: inspecting["cpu_us"], 110)
    goal("additional CPU of recording per request, us", lambda: own["recording_cpu_us"], 60)
    goal("CPU per request, provider takes 60 ms, us", lambda: own["slow_cpu_us"], 90)
    goal("requests/s on one core", lambda: own["requests_s"], 20_000, least=True)
    goal("... sustained", lambda: own["sustained_s"], 10_000, least=True)
    goal("CPU per stream of 50 chunks, us", lambda: own["stream_cpu_us"], 220)
    goal("... with 76 patterns", lambda: inspecting["stream_cpu_us"], 600)
    goal("streams/s, ratio to LiteLLM", lambda: own["streams_s"] / litellm["streams_s"], 100, least=True)
    goal("streams/s, ratio to Portkey", lambda: own["streams_s"] / portkey["streams_s"], 5, least=True)
    goal("latency minus nginx's, 1 connection, p50, us", lambda: over_nginx("p50_us_1"), 100)
    goal("latency minus nginx's, 1 connection, p99, us", lambda: over_nginx("p99_us_1"), 600)
    goal("worker's memory after the soak, MiB", lambda: own["late_mib"], 120)
    goal("growth after the soak's first tenth, %", lambda: own["growth"] * 100, 5)
    if own.get("streams_open", 0) >= 1000:
        goal("memory with 1,000 streams open, MiB", lambda: own["streams_mib"], 400)
    return results
