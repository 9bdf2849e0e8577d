/** A question as a command. */

/** The command that asks a conversation the same again, with a placeholder instead of a key. */
export function curlOf(origin: string, conversationId: string, question: string, model: string): string {
  const body = JSON.stringify({ content: question, model, stream: true });
  return `curl -N ${origin}/api/conversations/${conversationId}/messages \\
  -H "Authorization: Bearer $GATEHOUSE_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", String.raw`'\''`)}'`;
}
