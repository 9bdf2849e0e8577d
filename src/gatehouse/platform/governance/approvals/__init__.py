"""Approvals: requests that wait for a person, because a rule says `prompt` (reference 3, DLP rule) or a policy asks for
it (decisions of the contract: DLP, `human_in_loop`).

    pending -> approved    POST approve
            -> denied      POST deny
            -> expired     nobody decided in `DLP_PROMPT_TIMEOUT_SECONDS`
            -> cancelled   the client left, or the worker that held the request ended

All but `pending` are final. The gateway makes the rows (`live/approvals.py`); what was written in the request is in
none of them.
"""
