"""DLP events: what detection found and what was done about it, never the matched text (reference 1, Paginated
read-back lists)."""
