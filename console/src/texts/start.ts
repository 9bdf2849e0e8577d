/** The texts of the first steps. They are loaded with the pages that use them. */

export const startTexts = {
  title: "First steps",
  provider: "Choose where answers come from",
  noProvider: "No provider is set up yet.",
  readyProviders: (names: string) => `Ready: ${names}.`,
  sandboxReady: "The sandbox needs no key and no network.",
  sandboxOff: "To try Gatehouse without a provider, enable the built-in sandbox: set SANDBOX_ENABLED=true, run gatehouse migrate, and restart the platform.",
  addProvider: "Add a provider",
  addProviderText: "Its credentials are checked at once, and its models are added to the catalog.",
  key: "Create an API key",
  keyText: "Applications call models with a key. It is shown once.",
  keyName: "First steps",
  request: "Send the first request",
  requestText: "Create a key first. This page then waits for the request and opens its record: who called which model, what was redacted, what it cost.",
  waiting: "Waiting for the first request…",
  arrived: "The first request has arrived. Copy the key before you open the record: it is not shown again.",
  arrivedSaved: "The first request has arrived.",
  openRecord: "Open the record",
  stored: "I have stored the key",
  skip: "Skip, and go to the overview",
} as const;
