class HandClock:
    """A `Clock` whose time changes only when a test changes it."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.start = now
        self.passed = 0.0

    def now(self) -> float:
        return self.start + self.passed

    def monotonic(self) -> float:
        return 1000.0 + self.passed

    def move(self, seconds: float) -> None:
        self.passed += seconds
