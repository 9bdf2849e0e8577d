import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Panel } from "../parts/Page";
import { count, dollars, percent } from "../parts/format";
import { Skeleton } from "../parts/states";
import { texts } from "../texts";
import type { Analytics } from "./api";
import styles from "./Models.module.css";

const SHOWN = 6;

/** The models that answered requests, with their shares and costs. */
export function Models({ analytics }: { analytics: UseQueryResult<Analytics> }) {
  const models = analytics.data?.routing_decisions.by_model;
  const most = models?.[0]?.requests ?? 1;
  return (
    <Panel title={texts.overview.models}>
      {models?.length === 0 && <p className={styles["none"]}>{texts.overview.noModels}</p>}
      <ul className={styles["list"]}>
        {models === undefined && !analytics.error && [0, 1, 2].map((row) => <li key={row} className={styles["row"]}><Skeleton width="60%" /></li>)}
        {models?.slice(0, SHOWN).map((model) => (
          <li key={`${model.provider}/${model.model_id}`} className={styles["row"]}>
            <Link className={styles["model"]} to="/requests" search={{ provider: model.provider, model: model.model_id, period: "week" }}>
              <span className={styles["provider"]}>{model.provider} / </span>{model.model_id}
            </Link>
            <span className={styles["bar"]} aria-hidden><span style={{ width: `${(model.requests / most) * 100}%` }} /></span>
            <span className={styles["number"]}>{count(model.requests)}</span>
            <span className={styles["share"]}>{percent(model.pct / 100)}</span>
            <span className={styles["cost"]}>{model.cost_usd === null ? texts.overview.unpriced : dollars(model.cost_usd)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
