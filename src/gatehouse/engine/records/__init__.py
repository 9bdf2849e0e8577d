"""Contents of the journal: outcomes, audit events, samples, attribution and trace contexts."""
