/** A question of a conversation as a curl command. */

/** The curl command that sends the question to the conversation again. `$GATEHOUSE_API_KEY` stands for the key. */
export function curlOf(origin: string, conversationId: string, question: string, model: string): string {
  const body = JSON.stringify({ content: question, model, stream: true });
  return `curl -N ${origin}/api/conversations/${conversationId}/messages \\
  -H "Authorization: Bearer $GATEHOUSE_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", String.raw`'\''`)}'`;
}
