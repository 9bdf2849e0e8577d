"""Access requests: a person asks for a restricted model or for a higher limit, and an administrator decides
(docs/access-requests.md).

    pending -> approved     POST approve, which also gives what was asked for
            -> denied       POST deny
            -> withdrawn    DELETE, by the person who asked

All states but `pending` are final.
"""
