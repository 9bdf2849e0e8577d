import { Send } from "lucide-react";
import { Button } from "../parts/Button";
import { duration } from "../parts/format";
import { errorText } from "../parts/states";
import { texts } from "../texts";
import { siemTexts } from "../texts/siem";
import { useTestSiem } from "./api";
import styles from "./SiemPage.module.css";

/** Sends one event, and shows whether the receiver accepted it. */
export function TestDelivery() {
  const siem = siemTexts;
  const { data, error, isPending, mutate } = useTestSiem();
  return (
    <div className={styles["test"]}>
      <Button size="small" busy={isPending} onClick={() => mutate(undefined)}><Send aria-hidden />{siem.test}</Button>
      <span role="status">
        {isPending ? null : error ? (
          <span className={styles["failed"]}>{errorText(error)}</span>
        ) : data?.success === true ? (
          <span className={styles["passed"]}>{siem.testPassed(duration(data.latency_ms))}</span>
        ) : data !== undefined && (
          <span className={styles["failed"]}>{siem.testFailed(data.error ?? texts.none)}</span>
        )}
      </span>
    </div>
  );
}
