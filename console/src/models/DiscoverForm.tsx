import { useEffect, useRef } from "react";
import { Controller, useForm } from "react-hook-form";
import { ChoicesField } from "../parts/ChoicesField";
import { Button } from "../parts/Button";
import { DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { ErrorState, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { modelTexts } from "../texts/models";
import { type Discovered, discoveredId, useAddDiscovered, useDiscovered } from "./api";

/** Lists the models that providers offer and that are not in the catalog. The user selects those to add. */
export function DiscoverForm({ onDone }: { onDone: () => void }) {
  const models = modelTexts;
  const { data, error, refetch } = useDiscovered();
  if (error && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>;
  const missing = data.filter((model) => !model.already_in_catalog);
  if (missing.length > 0) return <Choice missing={missing} onDone={onDone} />;
  return (
    <>
      <p role="status">{models.nothingNew}</p>
      <DialogActions><Button onClick={onDone}>{texts.done}</Button></DialogActions>
    </>
  );
}

function Choice({ missing, onDone }: { missing: Discovered[]; onDone: () => void }) {
  const models = modelTexts;
  const form = useForm<{ chosen: string[] }>({ defaultValues: { chosen: [] } });
  const add = useAddDiscovered();
  const chosen = form.watch("chosen");
  // Closing the dialog aborts the additions.
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  return (
    <DialogForm
      form={form} action={models.addChosen(chosen.length)} onCancel={onDone}
      onSubmit={async (fields) => {
        running.current = new AbortController();
        const added: string[] = [];
        try {
          await add.mutateAsync({
            chosen: missing.filter((model) => fields.chosen.includes(discoveredId(model))), signal: running.current.signal,
            onAdded: (model) => added.push(discoveredId(model)),
          });
        } finally {
          if (added.length > 0) toast(models.synced(added.length));
          form.setValue("chosen", fields.chosen.filter((id) => !added.includes(id)));
        }
        onDone();
      }}
    >
      <Controller
        name="chosen" control={form.control} rules={{ validate: (ids) => ids.length > 0 || models.chooseOne }}
        render={({ field, fieldState }) => (
          <ChoicesField
            label={models.offered} hint={models.offeredHint} fault={fieldState.error?.message} chosen={field.value} onChange={field.onChange}
            options={missing.map((model) => ({ id: discoveredId(model), name: model.display_name === model.model_id ? discoveredId(model) : `${discoveredId(model)} (${model.display_name})` }))}
          />
        )}
      />
      <div>
        <Button size="small" onClick={() => form.setValue("chosen", chosen.length === missing.length ? [] : missing.map(discoveredId), { shouldDirty: true, shouldValidate: true })}>
          {chosen.length === missing.length ? models.chooseNone : models.chooseAll(missing.length)}
        </Button>
      </div>
    </DialogForm>
  );
}
