"""DLP events: the findings of detection and the actions taken. They never contain the matched text (docs/records.md).

Triggers count them by day (`dlp_event_counts`). The list uses the counts for its total, and to find far pages without a
scan.
"""
