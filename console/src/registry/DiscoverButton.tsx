import { Radar } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { registryTexts } from "../texts/registry";
import { type Discovered, type Discovery, nameOf, TIERS, useDiscover } from "./api";
import styles from "./DiscoverButton.module.css";
import { TIER_TONES } from "./tones";

interface DiscoverFields {
  lookback_days: number;
  /** `inferred`, `unclassified`, or one tier for all models. */
  auto_assign_tier: string;
}

const DEFAULT_DAYS = 30;

/** Creates draft entries for models that requests have used. The first step previews the new entries, the second step
 * adds them. */
export function DiscoverButton() {
  const registry = registryTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><Radar aria-hidden />{registry.discover}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={registry.discoverTitle} text={registry.discoverText} wide>
        <DiscoverForm onDone={close} />
      </Dialog>
    </>
  );
}

function DiscoverForm({ onDone }: { onDone: () => void }) {
  const registry = registryTexts;
  const form = useForm<DiscoverFields>({ defaultValues: { lookback_days: DEFAULT_DAYS, auto_assign_tier: "inferred" } });
  const discover = useDiscover();
  const [preview, setPreview] = useState<Discovered | null>(null);
  const { errors } = form.formState;
  const added = preview?.models.filter(({ status }) => status === "created") ?? [];
  const changed = { onChange: () => setPreview(null) };

  async function submit(fields: DiscoverFields) {
    if (preview === null) {
      setPreview(await discover.mutateAsync({ ...bodyOf(fields), dry_run: true }));
      return;
    }
    if (added.length > 0) toast(registry.discovered((await discover.mutateAsync(bodyOf(fields))).created));
    onDone();
  }

  return (
    <DialogForm
      form={form} onSubmit={submit} onCancel={onDone}
      action={preview === null ? registry.preview : added.length === 0 ? texts.done : registry.addDrafts(added.length)}
    >
      <Fields>
        <TextField
          label={registry.days} hint={registry.daysHint} type="number" min={1} max={365} step={1} fault={errors.lookback_days?.message}
          {...form.register("lookback_days", { valueAsNumber: true, ...changed })}
        />
        <SelectField label={registry.tier} hint={registry.assignHint} fault={errors.auto_assign_tier?.message} {...form.register("auto_assign_tier", changed)}>
          <option value="inferred">{registry.inferred}</option>
          {[...TIERS].reverse().map((tier) => <option key={tier} value={tier}>{registry.tiers[tier]}</option>)}
        </SelectField>
      </Fields>
      <div role="status">
        {preview !== null && <p>{registry.discoveredModels(preview.discovered, preview.existing)}</p>}
        {added.length > 0 && (
          <ul className={styles["models"]} aria-label={registry.newModels} tabIndex={0}>
            {added.map((model) => (
              <li key={nameOf(model)} className={styles["model"]}>
                <code className={styles["name"]}>{nameOf(model)}</code>
                <Badge tone={TIER_TONES[model.risk_tier]}>{registry.tiersShort[model.risk_tier]}</Badge>
              </li>
            ))}
          </ul>
        )}
      </div>
    </DialogForm>
  );
}

function bodyOf({ lookback_days, auto_assign_tier: tier }: DiscoverFields): Discovery {
  const assigned = tier === "inferred" ? true : tier === "unclassified" ? false : (tier as Discovery["auto_assign_tier"]);
  return { lookback_days, auto_assign_tier: assigned ?? null, dry_run: false };
}
