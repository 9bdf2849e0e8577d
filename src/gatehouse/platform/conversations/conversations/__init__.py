"""Conversations: chats that the platform stores for a user (docs/conversations.md).

    empty -> with messages        POST messages: a question and its answer are stored, or neither
    untitled -> titled            the owner's PATCH, or a model after the first complete answer
    any -> removed                DELETE, or the deletion of its owner
    message:  pending -> complete     the model has answered
              pending -> incomplete   the answer has begun: its stream is running, or was interrupted
              pending -> removed      the request was refused or failed; no part of it is stored

Only its owner can see a conversation, regardless of roles. A post passes the whole pipeline as a request of the caller.
The platform stores the texts as the model received and sent them, with labels in place of redacted values. All texts
are sealed under a key of the conversation.
"""
