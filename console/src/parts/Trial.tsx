import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "./Button";
import { Panel } from "./Page";
import { errorText } from "./states";
import styles from "./Trial.module.css";

/** A panel for a test of rules or settings: fields, a button, and the result below. */
export function TrialPanel({ title, text, action, busy, data, error, onRun, result, children }: {
  title: string;
  text: string;
  action: string;
  busy: boolean;
  data: unknown;
  error: unknown;
  onRun: () => void;
  result: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className={styles["place"]}>
      <Panel title={title}>
        <form className={styles["body"]} noValidate onSubmit={(event) => { event.preventDefault(); if (!busy) onRun(); }}>
          <p className={styles["text"]}>{text}</p>
          {children}
          <div><Button type="submit" busy={busy}>{action}</Button></div>
          <TrialResult data={data} error={error}>{result}</TrialResult>
        </form>
      </Panel>
    </div>
  );
}

/** The result of a test. When `data` or `error` changes, it is announced and scrolled into view. */
export function TrialResult({ data, error, children }: { data: unknown; error: unknown; children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (data || error) place.current?.scrollIntoView({ block: "nearest" });
  }, [data, error]);
  return (
    <div ref={place} role="status" className={styles["result"]}>
      {error ? <p className={styles["fault"]}>{errorText(error)}</p> : children}
    </div>
  );
}

/** Fields side by side, where there is room. */
export function Fields({ children }: { children: ReactNode }) {
  return <div className={styles["fields"]}>{children}</div>;
}

export { styles as trialStyles };
