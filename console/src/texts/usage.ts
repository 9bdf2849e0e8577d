/** The texts of "My usage". They are loaded with the pages that use them. */

const BUDGET_SCOPES: Record<string, string> = {
  user: "Your own",
  api_key: "API key",
  group: "Group",
  tenant: "Organization",
  plan: "Plan of",
};
const BUDGET_PERIODS: Record<string, string> = { minute: "Each minute", day: "Each day", month: "Each month" };

export const usageTexts = {
  title: "My usage",
  period: "Period",
  today: "Today",
  week: "7 days",
  month: "30 days",
  requests: "Requests",
  input: "Input tokens",
  output: "Output tokens",
  cached: (count: string) => `${count} from the cache`,
  cost: "Cost",
  model: "Model",
  models: "By model",
  noModel: "Refused before a model was called",
  days: "Requests by day",
  costDays: "Cost by day",
  refused: "Refused",
  redacted: "Redacted",
  zone: (zone: string) => `Days in ${zone}`,
  budgets: "What is left of your budgets",
  budgetOf: (scope: string, name: string | null) => `${BUDGET_SCOPES[scope] ?? scope}${name === null ? "" : ` “${name}”`}`,
  perPeriod: (period: string) => BUDGET_PERIODS[period] ?? period,
  resets: "renewed",
  warnsOnly: "calls over it pass",
  left: (left: string, limit: string) => `${left} of ${limit} left`,
  requestsLeft: (left: string, limit: string) => `${left} of ${limit} requests left`,
  tokensLeft: (left: string, limit: string) => `${left} of ${limit} tokens left`,
  askLimit: "Ask for a higher limit",
  askModel: "Ask for a model",
  empty: "No requests in this period",
  emptyText: "Applications call models with an API key. What they use shows here.",
} as const;
