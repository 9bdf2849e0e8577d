import { Link } from "@tanstack/react-router";
import { dollars, relative, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { texts } from "../texts";
import type { BudgetLeft } from "./api";
import styles from "./Budgets.module.css";

/** From this share of a limit on, what is left is shown as little. */
const LITTLE_LEFT = 0.1;

/** What is left of each budget that the user's calls count against. */
export function Budgets({ budgets }: { budgets: BudgetLeft[] }) {
  return (
    <Panel
      title={texts.usage.budgets}
      actions={<Link to="/access-requests" search={{ ask: "limit" }} className={styles["ask"]}>{texts.usage.askLimit}</Link>}
    >
      <ul className={styles["list"]}>
        {budgets.map((budget, at) => (
          <li key={at} className={styles["budget"]}>
            <div className={styles["head"]}>
              <h3 className={styles["name"]} title={budget.scope_name ?? undefined}>{texts.usage.budgetOf(budget.scope_type, budget.scope_name)}</h3>
              <span className={styles["period"]}>
                {texts.usage.perPeriod(budget.period)} · {texts.usage.resets(relative(budget.period_end))}
                {!budget.blocks && ` · ${texts.usage.warnsOnly}`}
              </span>
            </div>
            <Left limit={budget.limit_usd} left={budget.remaining_usd} text={(left, limit) => texts.usage.left(dollars(left), dollars(limit))} />
            <Left limit={budget.limit_requests} left={budget.remaining_requests} text={(left, limit) => texts.usage.requestsLeft(wholeNumber(left), wholeNumber(limit))} />
            <Left limit={budget.limit_tokens} left={budget.remaining_tokens} text={(left, limit) => texts.usage.tokensLeft(wholeNumber(left), wholeNumber(limit))} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** One limit: what is left, and a bar of what is used. */
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
