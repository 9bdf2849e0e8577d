import { useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { shortTime } from "../parts/format";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { versionTexts } from "../texts/dlp";
import type { DlpRule, NewDlpRule } from "./api";
import { changesOf, type FieldChange, ruleOf, type RuleVersion, useRestore, useVersions } from "./versions";
import styles from "./VersionsDialog.module.css";

const SHOWN_VERSIONS = 50;

/** The versions of a rule, each with its changes. Administrators can restore an earlier version. */
export function VersionsDialog({ rule, onClose }: { rule: DlpRule | undefined; onClose: () => void }) {
  return (
    <Dialog open={rule !== undefined} onClose={onClose} title={rule === undefined ? "" : versionTexts.title(rule.detector_name)} wide>
      {rule !== undefined && <Versions key={rule.id} rule={rule} />}
    </Dialog>
  );
}

function Versions({ rule }: { rule: DlpRule }) {
  const versions = versionTexts;
  const { administers } = useRights();
  const list = useVersions(rule.id);
  if (list.error && list.data === undefined) return <ErrorState error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
  return (
    <>
      <ol className={styles["list"]} aria-label={versions.list}>
        {list.data.slice(0, SHOWN_VERSIONS).map((version, at) => (
          <li key={version.id} className={styles["version"]}>
            <div className={styles["head"]}>
              <strong>{versions.changes[version.change_type]}</strong>
              <span className={styles["muted"]}><Time at={version.changed_at} /> <Author id={version.changed_by} /></span>
              {at === 0 && <Badge tone="success">{versions.current}</Badge>}
              {at > 0 && administers && <RestoreButton rule={rule} version={version} />}
            </div>
            <Changes changes={changesOf(version)} />
          </li>
        ))}
      </ol>
      {list.data.length > SHOWN_VERSIONS && <p className={styles["muted"]}>{versions.older(SHOWN_VERSIONS, list.data.length)}</p>}
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
  return <Restore rule={rule} values={values} when={shortTime(version.changed_at)} />;
}

function Restore({ rule, values, when }: { rule: DlpRule; values: NewDlpRule; when: string }) {
  const versions = versionTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const restore = useRestore(rule);
  return (
    <span className={styles["restore"]}>
      <Button ref={trigger} size="small" aria-label={versions.restoreThis(when)} onClick={() => setOpen(true)}>{versions.restore}</Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} look="primary" title={versions.restoreTitle(when)}
        text={versions.restoreText} action={versions.restoreAction} run={() => restore.mutateAsync(values)}
        done={versions.restored(values.detector_name)}
      />
    </span>
  );
}
