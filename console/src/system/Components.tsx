import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Badge } from "../parts/Badge";
import { bytes, duration } from "../parts/format";
import { systemTexts } from "../texts/system";
import type { Component, Status } from "./api";
import styles from "./SystemPage.module.css";
import { STATUS_TONES } from "./tones";

/** Statuses, the worst first. The row of the providers shows the worst status of any provider. */
const STATUSES: readonly Status[] = ["unhealthy", "degraded", "unknown", "healthy"];

/** The components of the system, each with its status and details. */
export function Components({ components, providers }: { components: Record<string, Component>; providers: readonly Status[] }) {
  const system = systemTexts;
  return (
    <ul className={styles["list"]} aria-label={system.components}>
      {Object.entries(components).map(([name, component]) => (
        <Row key={name} name={system.componentOf(name)} status={component.status}>{detailOf(component)}</Row>
      ))}
      {providers.length > 0 && (
        <Row name={system.providers} status={STATUSES.find((status) => providers.includes(status)) ?? "unknown"}>
          <Link to="/providers">
            {STATUSES.filter((status) => providers.includes(status))
              .map((status) => system.providersOf(providers.filter((other) => other === status).length, status)).join(", ")}
          </Link>
        </Row>
      )}
    </ul>
  );
}

function Row({ name, status, children }: { name: string; status: Status; children: ReactNode }) {
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]}>{name}</span>
        {children !== "" && <span className={styles["muted"]}>{children}</span>}
      </span>
      <Badge tone={STATUS_TONES[status]}>{systemTexts.statuses[status]}</Badge>
    </li>
  );
}

function detailOf({ detail, latency_ms: latency, pool, workers, waiting_jobs: waiting, bytes: stored }: Component): string {
  const system = systemTexts;
  return [
    detail,
    typeof latency === "number" && system.answersIn(duration(latency)),
    pool !== undefined && system.connections(pool.in_use, pool.max),
    workers !== undefined && system.jobProcesses(workers),
    waiting !== undefined && system.waitingJobs(waiting),
    stored !== undefined && system.journalSize(bytes(stored)),
  ].filter((part) => typeof part === "string" && part !== "").join(" · ");
}
