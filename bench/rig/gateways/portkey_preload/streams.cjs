// Portkey 1.15.2 appends headers to the answer that fetch gave it. Those are immutable, so every stream ends in
// `TypeError: immutable` and a 500. A copy of the answer has headers of its own; plain answers are left alone.
const NativeResponse = globalThis.Response;
const nativeFetch = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const answer = await nativeFetch(...request);
  const stream = (answer.headers.get('content-type') || '').startsWith('text/event-stream');
  return stream ? new NativeResponse(answer.body, answer) : answer;
};
