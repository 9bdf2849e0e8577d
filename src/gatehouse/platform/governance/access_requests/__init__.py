"""Access requests: a user requests a restricted model or a higher limit, and an administrator decides
(docs/access-requests.md).

    pending -> approved     POST approve, which also grants the model or the limit
            -> denied       POST deny
            -> withdrawn    DELETE, by the requester

All states but `pending` are final.
"""
