-- The worker that answers (nodes.id). A pending message of a worker that no longer exists does not block the
-- conversation.
ALTER TABLE conversation_messages ADD COLUMN node uuid;
