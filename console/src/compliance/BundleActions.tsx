import { Archive, ArchiveRestore, BadgeCheck } from "lucide-react";
import { useState } from "react";
import { useKept } from "../api/versions";
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
  const archive = useArchive();
  const remove = useDeleteBundle(bundle.id);
  const [archiving, setArchiving] = useState(false);
  const { name } = bundle;
  return (
    <>
      <RuleMenu
        name={name} enabled={bundle.enabled} editor={(close) => <BundleForm bundle={bundle} onDone={close} />} deleteText={compliance.deleteText}
        onToggle={() => setEnabled.mutateAsync(!bundle.enabled)} onDelete={() => remove.mutateAsync(undefined)}
      >
        <StateItems bundle={bundle} onArchive={() => setArchiving(true)} />
      </RuleMenu>
      <ConfirmDialog
        open={archiving} onClose={() => setArchiving(false)} title={compliance.archiveTitle(name)} text={compliance.archiveText}
        action={compliance.archiveNow} row={bundle} run={(shown) => archive.mutateAsync(shown)} done={compliance.archived(name)}
      />
    </>
  );
}

/** The items for the state of a bundle. While the menu is open, they keep the bundle that the list showed. */
function StateItems({ bundle, onArchive }: { bundle: Bundle; onArchive: () => void }) {
  const compliance = complianceTexts;
  const { kept, change } = useKept(bundle);
  const activate = useActivate();
  const acknowledge = useAcknowledge();
  const { name } = kept;
  if (kept.state === "archived") {
    return (
      <MenuItem onClick={() => report(change(activate.mutateAsync), () => toast(compliance.activated(name)))}>
        <ArchiveRestore aria-hidden size={15} />{compliance.activate}
      </MenuItem>
    );
  }
  return (
    <>
      {kept.acknowledged_at === null && (
        <MenuItem onClick={() => report(change(acknowledge.mutateAsync), () => toast(compliance.acknowledgedNow(name)))}>
          <BadgeCheck aria-hidden size={15} />{compliance.acknowledge}
        </MenuItem>
      )}
      <MenuItem onClick={onArchive}><Archive aria-hidden size={15} />{compliance.archive}</MenuItem>
    </>
  );
}
