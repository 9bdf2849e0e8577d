"""Conversations: chats that the platform keeps for a person (decisions 4, Conversations).

    empty -> with messages        POST messages: a question and its answer, together or not at all
    untitled -> titled            the owner's PATCH, or a model after the first whole answer
    any -> removed                DELETE, or with its owner

    message:  pending -> complete     the model has answered
              pending -> incomplete   it has begun to: its stream runs, or broke off
              pending -> removed      the request was refused or failed: nothing is kept of it

A conversation is its owner's alone; nobody else sees it, whatever their role. A post goes through the whole pipeline as
the caller. Kept is what the model was shown and has said, labels in the place of what was redacted, and all texts are
sealed under a key of the conversation's own.
"""
