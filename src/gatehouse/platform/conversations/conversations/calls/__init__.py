"""Model calls for conversations: questions, answers, titles and summaries."""
