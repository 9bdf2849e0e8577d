import type { ReactNode } from "react";
import { Pager } from "../parts/Pager";
import { ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import styles from "./Cards.module.css";

/** A page of cards. If `isLive` is true, screen readers announce new cards. */
export function Cards<T>({ query: { data, error, refetch }, page, onPage, isLive, empty, children }: {
  query: { data: { items: T[]; total: number; page_size: number } | undefined; error: unknown; refetch: () => Promise<unknown> };
  page: number;
  onPage: (page: number) => void;
  isLive: boolean;
  empty: ReactNode;
  children: (item: T) => ReactNode;
}) {
  if (error && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (data === undefined) {
    return <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /><Skeleton width="35%" /></div>;
  }
  if (data.total === 0) return empty;
  return (
    <>
      <ul className={styles["list"]} aria-live={isLive ? "polite" : "off"}>{data.items.map(children)}</ul>
      <Pager page={page} size={data.page_size} total={data.total} onPage={onPage} />
    </>
  );
}
