import { count, dollars } from "../parts/format";
import { budgetTexts } from "../texts/budgets";
import type { Budget } from "./api";
import styles from "./Spent.module.css";

/** If at least this share of a limit is spent, its bar shows a warning. */
const WARNING_SHARE = 0.8;

/** Shows the amount spent of each limit of a budget, as numbers and as bars. */
export function Spent({ budget: { limit_usd: usd, limit_requests: requests, limit_tokens: tokens, current } }: { budget: Budget }) {
  const budgets = budgetTexts;
  return (
    <span className={styles["limits"]}>
      {usd !== null && <Limit text={budgets.ofDollars(dollars(current.spent_usd), dollars(usd))} share={current.spent_usd / usd} />}
      {requests !== null && <Limit text={budgets.ofRequests(count(current.spent_requests), count(requests))} share={current.spent_requests / requests} />}
      {tokens !== null && <Limit text={budgets.ofTokens(count(current.spent_tokens), count(tokens))} share={current.spent_tokens / tokens} />}
    </span>
  );
}

function Limit({ text, share }: { text: string; share: number }) {
  const state = share >= 1 ? "exhausted" : share >= WARNING_SHARE ? "warning" : "fine";
  return (
    <span className={styles["limit"]}>
      <span>{text}</span>
      <span className={styles["bar"]} data-state={state} aria-hidden><span style={{ width: `${Math.min(1, share) * 100}%` }} /></span>
    </span>
  );
}
