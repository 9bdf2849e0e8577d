"""Model calls of conversations: questions, answers, titles and summaries."""
