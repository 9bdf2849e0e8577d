import { Archive, ArchiveRestore, BadgeCheck } from "lucide-react";
import { useState } from "react";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { MenuItem } from "../parts/Menu";
import { report } from "../parts/report";
import { RuleMenu } from "../parts/rules";
import { toast } from "../parts/toasts";
import { complianceTexts } from "../texts/compliance";
import { type Bundle, useAcknowledge, useActivate, useArchive, useDeleteBundle, useSetEnabled } from "./api";
import { BundleForm } from "./BundleForm";

/** The menu of a bundle, for administrators. */
export function BundleActions({ bundle }: { bundle: Bundle }) {
  const compliance = complianceTexts;
  const setEnabled = useSetEnabled(bundle.id);
  const archive = useArchive(bundle);
  const activate = useActivate(bundle);
  const acknowledge = useAcknowledge(bundle);
  const remove = useDeleteBundle(bundle.id);
  const [archiving, setArchiving] = useState(false);
  const { name } = bundle;
  const isArchived = bundle.state === "archived";
  return (
    <>
      <RuleMenu
        name={name} enabled={bundle.enabled} editor={(close) => <BundleForm bundle={bundle} onDone={close} />} deleteText={compliance.deleteText}
        onToggle={() => setEnabled.mutateAsync(!bundle.enabled)} onDelete={() => remove.mutateAsync(undefined)}
      >
        {bundle.acknowledged_at === null && !isArchived && (
          <MenuItem onClick={() => report(acknowledge.mutateAsync(), () => toast(compliance.acknowledgedNow(name)))}>
            <BadgeCheck aria-hidden size={15} />{compliance.acknowledge}
          </MenuItem>
        )}
        {isArchived ? (
          <MenuItem onClick={() => report(activate.mutateAsync(), () => toast(compliance.activated(name)))}>
            <ArchiveRestore aria-hidden size={15} />{compliance.activate}
          </MenuItem>
        ) : (
          <MenuItem onClick={() => setArchiving(true)}><Archive aria-hidden size={15} />{compliance.archive}</MenuItem>
        )}
      </RuleMenu>
      <ConfirmDialog
        open={archiving} onClose={() => setArchiving(false)} title={compliance.archiveTitle(name)} text={compliance.archiveText}
        action={compliance.archiveNow} run={() => archive.mutateAsync(undefined)} done={compliance.archived(name)}
      />
    </>
  );
}
