"""Approvals: requests that wait until an administrator decides, because a DLP rule's action is `prompt` or a policy
rule requires approval (docs/approvals.md).

    pending -> approved    POST approve
            -> denied      POST deny
            -> expired     no decision within `DLP_PROMPT_TIMEOUT_SECONDS`
            -> cancelled   the client disconnected, or the worker of the request ended

All states but `pending` are final. The gateway inserts the rows (`live/approvals.py`). No row contains text of the
request.
"""
