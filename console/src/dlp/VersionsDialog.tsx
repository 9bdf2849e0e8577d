import { useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { shortTime, utc } from "../parts/format";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Pager } from "../parts/Pager";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { versionTexts } from "../texts/dlp";
import type { DlpRule, NewDlpRule } from "./api";
import { changesOf, type FieldChange, ruleOf, type RuleVersion, useRestore, useVersions } from "./versions";
import styles from "./VersionsDialog.module.css";

/** The versions of a rule, each with its changes. Administrators can restore an earlier version. */
export function VersionsDialog({ rule, page, onPage, onClose }: {
  rule: DlpRule | undefined;
  page: number;
  onPage: (page: number) => void;
  onClose: () => void;
}) {
  return (
    <Dialog open={rule !== undefined} onClose={onClose} title={rule === undefined ? "" : versionTexts.title(rule.detector_name)} wide>
      {rule !== undefined && <Versions key={rule.id} rule={rule} page={page} onPage={onPage} />}
    </Dialog>
  );
}

function Versions({ rule, page, onPage }: { rule: DlpRule; page: number; onPage: (page: number) => void }) {
  const versions = versionTexts;
  const { administers } = useRights();
  const list = useVersions(rule.id, page);
  if (list.error && list.data === undefined) return <ErrorState error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
  const isCurrent = (at: number) => page === 1 && at === 0 && !list.isPlaceholderData;
  return (
    <>
      <ol className={styles["list"]} aria-label={versions.list}>
        {list.data.rows.map((version, at) => (
          <li key={version.id} className={styles["version"]}>
            <div className={styles["head"]}>
              <strong>{versions.changes[version.change_type]}</strong>
              <span className={styles["muted"]}><Time at={version.changed_at} /> <Author id={version.changed_by} /></span>
              {isCurrent(at) && <Badge tone="success">{versions.current}</Badge>}
              {!isCurrent(at) && administers && <RestoreButton rule={rule} version={version} />}
            </div>
            <Changes changes={changesOf(version)} />
          </li>
        ))}
      </ol>
      {(page > 1 || list.data.total > PAGE_SIZE) && (
        <Pager name={versions.pages} page={page} size={PAGE_SIZE} total={list.data.total} onPage={onPage} />
      )}
    </>
  );
}

function Author({ id }: { id: string | null }) {
  const name = useUserName(id);
  return name === null ? versionTexts.system : versionTexts.by(name);
}

function Changes({ changes }: { changes: FieldChange[] }) {
  const versions = versionTexts;
  if (changes.length === 0) return <p className={styles["muted"]}>{versions.same}</p>;
  return (
    <dl className={styles["changes"]}>
      {changes.map(({ name, before, after }) => (
        <div key={name} className={styles["change"]}>
          <dt>{name}</dt>
          <dd>
            {before !== "" && <del><span className={styles["hidden"]}>{versions.was} </span>{before}</del>}
            {after !== "" ? (
              <ins><span className={styles["hidden"]}>{versions.is} </span>{after}</ins>
            ) : (
              <span className={styles["muted"]}>{versions.empty}</span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function RestoreButton({ rule, version }: { rule: DlpRule; version: RuleVersion }) {
  const values = ruleOf(version);
  if (values === null) return null;
  return <Restore rule={rule} values={values} at={version.changed_at} />;
}

function Restore({ rule, values, at }: { rule: DlpRule; values: NewDlpRule; at: string }) {
  const versions = versionTexts;
  const when = shortTime(at);
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const restore = useRestore();
  return (
    <span className={styles["restore"]}>
      <Button ref={trigger} size="small" aria-label={versions.restoreThis(when)} onClick={() => setOpen(true)}>{versions.restore}</Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} look="primary" title={versions.restoreTitle(when)}
        text={versions.restoreText(utc(at))} action={versions.restoreAction} row={rule} run={(shown) => restore.mutateAsync({ rule: shown, values })}
        done={versions.restored(values.detector_name)}
      />
    </span>
  );
}
