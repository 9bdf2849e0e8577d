import { Download } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useRights } from "../api/queries";
import { useKept } from "../api/versions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { saveFile } from "../parts/download";
import { wholeNumber } from "../parts/format";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { registryTexts } from "../texts/registry";
import { type Evidence, linesOfTags, nameOf, type RegisteredModel, STATUSES, type Status, useEvidence, useMoveEntry } from "./api";
import styles from "./EntryDialog.module.css";
import { EvidenceLists } from "./EvidenceLists";
import { STATUS_TONES, TIER_TONES } from "./tones";

/** An entry of the registry with its evidence. Administrators can change its status. */
export function EntryDialog({ id, listed, onClose }: { id: string | undefined; listed: RegisteredModel | undefined; onClose: () => void }) {
  return (
    <Dialog open={id !== undefined} onClose={onClose} title={listed === undefined ? registryTexts.entry : nameOf(listed)} wide>
      {id !== undefined && <Entry key={id} id={id} />}
    </Dialog>
  );
}

function Entry({ id }: { id: string }) {
  const evidence = useEvidence(id);
  const { data } = evidence;
  if (evidence.error && data === undefined) return <ErrorState error={evidence.error} onRetry={() => void evidence.refetch()} />;
  if (data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
  return <Contents evidence={data} />;
}

function Contents({ evidence }: { evidence: Evidence }) {
  const { administers } = useRights();
  const { kept, change } = useKept(evidence);
  const move = useMoveEntry();
  return (
    <div className={styles["body"]}>
      <Facts evidence={kept} />
      {administers && (
        <Moves evidence={kept} onMove={(status) => change(({ model }) => move.mutateAsync({ entry: model, status }))} />
      )}
      <EvidenceLists evidence={kept} />
      <Footer evidence={kept} />
    </div>
  );
}

function Facts({ evidence: { model, enforcement, incidents } }: { evidence: Evidence }) {
  const { rules } = texts;
  const registry = registryTexts;
  const tags = linesOfTags(model.tags);
  return (
    <dl className={styles["facts"]}>
      <Fact name={registry.model}><code>{nameOf(model)}</code></Fact>
      <Fact name={registry.tier}><Badge tone={TIER_TONES[model.risk_tier]}>{registry.tiersShort[model.risk_tier]}</Badge> {registry.tierHints[model.risk_tier]}</Fact>
      <Fact name={rules.status}><Badge tone={STATUS_TONES[model.validation_status]}>{registry.statuses[model.validation_status]}</Badge></Fact>
      <Fact name={registry.enforcement}>{registry.enforcements[enforcement.mode]}{enforcement.objection !== null && <> · <code>{enforcement.objection}</code></>}</Fact>
      <Fact name={registry.owner}>{model.owner}</Fact>
      <Fact name={rules.description}>{model.description}</Fact>
      <Fact name={registry.tags}>{tags.length > 0 && tags.join(", ")}</Fact>
      <Fact name={registry.requests}>{wholeNumber(model.request_count_30d)}</Fact>
      <Fact name={registry.seen}>
        {model.first_seen_at === null || model.last_seen_at === null
          ? registry.never
          : <><Time at={model.first_seen_at} /> – <Time at={model.last_seen_at} /></>}
      </Fact>
      <Fact name={registry.incidents}>
        {registry.incidentsOf(incidents.errors, incidents.dlp_blocks, incidents.registry_flags, incidents.kill_switches)}
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === false) return null;
  return <div className={styles["fact"]}><dt>{name}</dt><dd>{children}</dd></div>;
}

/** A button for each status that the entry can change to. It asks for confirmation. */
function Moves({ evidence: { model, next_statuses: next }, onMove }: { evidence: Evidence; onMove: (status: Status) => Promise<unknown> }) {
  const registry = registryTexts;
  const [open, setOpen] = useState(false);
  const [target, setTarget] = useState<Status>("deprecated");
  if (next.length === 0) return <p className={styles["muted"]}>{registry.noMove}</p>;
  return (
    <div className={styles["moves"]} role="group" aria-label={registry.moveTo}>
      <span className={styles["muted"]}>{registry.moveTo}</span>
      {STATUSES.filter((status) => next.includes(status)).map((status) => (
        <Button
          key={status} size="small"
          onClick={() => {
            setTarget(status);
            setOpen(true);
          }}
        >
          {registry.statuses[status]}
        </Button>
      ))}
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} title={registry.moveTitle(nameOf(model), registry.statuses[target])}
        text={registry.moveTexts[target]} action={registry.move} look={target === "deprecated" ? "danger" : "primary"}
        run={() => onMove(target)} done={registry.moved(nameOf(model), registry.statuses[target])}
      />
    </div>
  );
}

function Footer({ evidence }: { evidence: Evidence }) {
  const registry = registryTexts;
  const { chain, complete, generated_at: at } = evidence;
  return (
    <footer className={styles["footer"]}>
      <p className={styles["muted"]}>
        {registry.chainEnd(chain.sequence)} <code className={styles["hash"]}>{chain.hash}</code> · <Time at={at} />
        {!complete && <> · {registry.incomplete}</>}
      </p>
      <Button
        size="small"
        onClick={() => saveFile("evidence.json", new Blob([JSON.stringify(evidence, null, 2)], { type: "application/json" }))}
      >
        <Download aria-hidden />{registry.download}
      </Button>
    </footer>
  );
}
