"""Records: what happened. Audit events in a chain per tenant, usage, DLP events (decisions of the contract: reference
1, Paginated read-back lists). The lowest chapter: every other one writes here."""
