/** The texts of the page of a shared conversation. */
export const sharedTexts = {
  title: "Shared conversation",
  note: (model: string) => `A conversation with ${model}. The link shows its present state, last changed`,
  question: "Question",
  empty: "The conversation has no messages yet.",
  more: "Show later messages",
  gone: "This link shows nothing",
  goneText: "The link does not exist or was revoked, or the conversation was deleted.",
} as const;
