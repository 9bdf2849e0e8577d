import { Link } from "@tanstack/react-router";
import { dollars, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { Time } from "../parts/Time";
import { usageTexts } from "../texts/usage";
import type { BudgetLeft } from "./api";
import styles from "./Budgets.module.css";

/** If at most this share of a limit remains, the remaining amount is shown as low. */
const LITTLE_LEFT = 0.1;

/** The remaining amount of each budget that applies to the user's requests. */
export function Budgets({ budgets }: { budgets: BudgetLeft[] }) {
  return (
    <Panel
      title={usageTexts.budgets}
      actions={<Link to="/access-requests" search={{ ask: "limit" }} className={styles["ask"]}>{usageTexts.askLimit}</Link>}
    >
      <ul className={styles["list"]}>
        {budgets.map((budget, at) => (
          <li key={at} className={styles["budget"]}>
            <div className={styles["head"]}>
              <h3 className={styles["name"]} title={budget.scope_name ?? undefined}>{usageTexts.budgetOf(budget.scope_type, budget.scope_name)}</h3>
              <span className={styles["period"]}>
                {usageTexts.perPeriod(budget.period)} · {usageTexts.resets} <Time at={budget.period_end} as="relative" />
                {!budget.blocks && ` · ${usageTexts.warnsOnly}`}
              </span>
            </div>
            <Left limit={budget.limit_usd} left={budget.remaining_usd} text={(left, limit) => usageTexts.left(dollars(left), dollars(limit))} />
            <Left limit={budget.limit_requests} left={budget.remaining_requests} text={(left, limit) => usageTexts.requestsLeft(wholeNumber(left), wholeNumber(limit))} />
            <Left limit={budget.limit_tokens} left={budget.remaining_tokens} text={(left, limit) => usageTexts.tokensLeft(wholeNumber(left), wholeNumber(limit))} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** A limit: the remaining amount, and a bar for the used amount. */
function Left({ limit, left, text }: {
  limit: number | null;
  left: number | null;
  text: (left: number, limit: number) => string;
}) {
  if (limit === null || left === null) return null;
  const used = Math.min(1, 1 - left / limit);
  return (
    <div className={styles["limit"]} data-state={left === 0 ? "none" : left / limit <= LITTLE_LEFT ? "little" : undefined}>
      <span className={styles["bar"]} aria-hidden><span style={{ width: `${used * 100}%` }} /></span>
      <span className={styles["left"]}>{text(left, limit)}</span>
    </div>
  );
}
