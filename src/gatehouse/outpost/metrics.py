"""Metrics that an outpost publishes at `/metrics`: the gateway's, and its own."""

from pathlib import Path

from gatehouse.ingress.metrics import GatewayMetrics, max_gauge, sum_gauge


class OutpostFigures(GatewayMetrics):
    """The metrics of one outpost."""

    def __init__(self, home: Path) -> None:
        self.policy_version = max_gauge("service_outpost_policy_version", "Version of the bundle in force.")
        self.policy_age = max_gauge("service_outpost_policy_age_seconds", "Since the bundle in force was issued.")
        self.platform_silence = max_gauge(
            "service_outpost_platform_silence_seconds", "Since the platform last answered."
        )
        self.records_handed_in = sum_gauge("service_outpost_records_handed_in", "Records that the platform took.")
        self.records_rejected = sum_gauge(
            "service_outpost_records_rejected", "Records that the platform took for none; the audit log has them."
        )
        self.records_lost = sum_gauge(
            "service_outpost_records_lost", "Damaged places of the journal, and records that are not kept any more."
        )
        self.budget_spent = max_gauge(
            "service_outpost_budget_spent_usd", "By this outpost this month, with what is set aside."
        )
        self.budget_share = max_gauge(
            "service_outpost_budget_share_usd", "What of the month's budget is this outpost's."
        )
        self.peers_away = max_gauge("service_outpost_peers_away", "Peers that give no answer.")
        self.siem_sent = sum_gauge("service_outpost_siem_events_total", "Events that the SIEM took from here.")
        self.siem_waiting = max_gauge("service_outpost_siem_waiting_bytes", "Of the journal, not sent to the SIEM yet.")
        self.siem_failing = max_gauge("service_outpost_siem_failing", "1: the SIEM does not take events.")
        self.disk_used = max_gauge("service_outpost_disk_used_percent", "Of the file system of GATEHOUSE_HOME.")
        self.disk_shed = max_gauge(
            "service_outpost_disk_shed",
            "What a full disk costs: 0 nothing, 1 old audit files, 2 new audit lines, 3 the journal's detail.",
        )
        self.entries_thinned = sum_gauge("service_outpost_entries_thinned", "Records without detail, for want of disk.")
        super().__init__(home / "outpost")
