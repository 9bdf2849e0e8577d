import { ChartColumn } from "lucide-react";
import { Badge } from "../parts/Badge";
import { Dialog } from "../parts/Dialog";
import { FilterSelect } from "../parts/fields";
import { dollars, duration, percent } from "../parts/format";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { aliasTexts } from "../texts/aliases";
import { type ComparedDeployment, type ComparedPeriod, type ModelAlias, useComparison } from "./api";
import { COMPARED_PERIODS } from "./choices";
import styles from "./ComparisonDialog.module.css";

/** Cost, latency and errors of each deployment of an alias. */
export function ComparisonDialog({ alias, period, onPeriod, onClose }: {
  alias: ModelAlias | undefined;
  period: ComparedPeriod;
  onPeriod: (period: ComparedPeriod) => void;
  onClose: () => void;
}) {
  return (
    <Dialog open={alias !== undefined} onClose={onClose} title={alias === undefined ? "" : aliasTexts.comparisonOf(alias.name)} text={aliasTexts.comparisonText} wide>
      {alias !== undefined && <Comparison alias={alias} period={period} onPeriod={onPeriod} />}
    </Dialog>
  );
}

function Comparison({ alias, period, onPeriod }: { alias: ModelAlias; period: ComparedPeriod; onPeriod: (period: ComparedPeriod) => void }) {
  const { data, error, refetch } = useComparison(alias.id, period);
  return (
    <>
      <div className={styles["bar"]}>
        <FilterSelect label={aliasTexts.period} value={period} onChange={({ target }) => onPeriod(target.value as ComparedPeriod)}>
          {COMPARED_PERIODS.map((name) => <option key={name} value={name}>{aliasTexts.periods[name]}</option>)}
        </FilterSelect>
      </div>
      {error !== null && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>
      ) : data.deployments.every(({ requests }) => requests === 0) ? (
        <EmptyState icon={ChartColumn} title={aliasTexts.nothing} />
      ) : (
        <>
          <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={aliasTexts.comparisonOf(alias.name)}>
            <table className={styles["table"]}>
              <thead>
                <tr>
                  <th scope="col">{aliasTexts.model}</th>
                  <th scope="col">{aliasTexts.requests}</th>
                  <th scope="col">{aliasTexts.errors}</th>
                  <th scope="col">{aliasTexts.cost}</th>
                  <th scope="col">{aliasTexts.latency}</th>
                  <th scope="col">{aliasTexts.p95}</th>
                  <th scope="col">{aliasTexts.firstToken}</th>
                </tr>
              </thead>
              <tbody>
                {data.deployments.map((deployment) => (
                  <Row key={`${deployment.role} ${deployment.provider}/${deployment.model_id} ${deployment.credential ?? ""}`} deployment={deployment} />
                ))}
              </tbody>
            </table>
          </div>
          {data.truncated && <p className={styles["note"]}>{aliasTexts.truncated(data.records.toLocaleString("en"))}</p>}
        </>
      )}
    </>
  );
}

function Row({ deployment }: { deployment: ComparedDeployment }) {
  const { provider, model_id: model, credential, role, requests, errors, error_rate: rate } = deployment;
  return (
    <tr>
      <td><code>{provider}/{model}</code>{credential !== null && <> {credential}</>}{role === "shadow" && <> <Badge tone="neutral">{aliasTexts.roles.shadow}</Badge></>}</td>
      <td>{requests.toLocaleString("en")}</td>
      <td>{errors.toLocaleString("en")}{errors > 0 && ` (${percent(rate)})`}</td>
      <td>{dollars(deployment.cost_usd)}</td>
      <td>{duration(deployment.latency_median_ms)}</td>
      <td>{duration(deployment.latency_p95_ms)}</td>
      <td>{duration(deployment.time_to_first_token_median_ms)}</td>
    </tr>
  );
}
