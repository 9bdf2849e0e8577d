"""The metrics that an outpost publishes at `/metrics`: those of the gateway, and those of the outpost."""

from pathlib import Path

from gatehouse.ingress.metrics import GatewayMetrics, max_gauge, sum_gauge


class OutpostMetrics(GatewayMetrics):
    """The metrics of one outpost."""

    def __init__(self, home: Path) -> None:
        self.policy_version = max_gauge("service_outpost_policy_version", "Version of the active bundle.")
        self.policy_age = max_gauge("service_outpost_policy_age_seconds", "Age of the active bundle.")
        self.platform_silence = max_gauge(
            "service_outpost_platform_silence_seconds", "Time since the platform last responded."
        )
        self.records_handed_in = sum_gauge("service_outpost_records_handed_in", "Records the platform accepted.")
        self.records_rejected = sum_gauge(
            "service_outpost_records_rejected", "Records that the platform has rejected; the audit log has them."
        )
        self.records_lost = sum_gauge(
            "service_outpost_records_lost", "Damaged places of the journal, and records that are no longer stored."
        )
        self.budget_spent = max_gauge(
            "service_outpost_budget_spent_usd", "Spent by this outpost this month, with reserved amounts."
        )
        self.budget_share = max_gauge(
            "service_outpost_budget_share_usd", "The part of the month's budget that this outpost may spend."
        )
        self.peers_away = max_gauge("service_outpost_peers_away", "Peers that do not respond.")
        self.siem_sent = sum_gauge("service_outpost_siem_events_total", "Events that the SIEM has accepted.")
        self.siem_waiting = max_gauge("service_outpost_siem_waiting_bytes", "Journal bytes not sent to the SIEM yet.")
        self.siem_failing = max_gauge("service_outpost_siem_failing", "1: the SIEM does not accept events.")
        self.disk_used = max_gauge("service_outpost_disk_used_percent", "Used part of GATEHOUSE_HOME's file system.")
        self.disk_shed = max_gauge(
            "service_outpost_disk_shed",
            "What is dropped on a full disk: 0 nothing, 1 old audit files, 2 new audit lines, 3 the journal's detail.",
        )
        self.entries_thinned = sum_gauge("service_outpost_entries_thinned", "Records without detail (full disk).")
        super().__init__(home / "outpost")
