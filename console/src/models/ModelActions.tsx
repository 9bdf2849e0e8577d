import { Ban, CircleCheck, Pencil, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { MenuItem } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { modelTexts } from "../texts/models";
import { type Model, nameOf, useDeleteModel, useSetActive, useUpdateModel } from "./api";
import { ModelForm } from "./ModelForm";

/** The menu of a model, for administrators. */
export function ModelActions({ model }: { model: Model }) {
  const models = modelTexts;
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const setActive = useSetActive(model.id);
  const remove = useDeleteModel(model.id);
  const name = nameOf(model);
  const close = () => setOpen(null);

  function toggle() {
    report(setActive.mutateAsync(!model.is_active), () => toast(model.is_active ? models.wasDeactivated(name) : models.wasActivated(name)));
  }

  return (
    <>
      <RowMenu label={models.actionsOf(name)} trigger={trigger}>
        <MenuItem onClick={() => setOpen("edit")}><Pencil aria-hidden size={15} />{models.edit}</MenuItem>
        <MenuItem onClick={toggle}>
          {model.is_active ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
          {model.is_active ? models.deactivate : models.activate}
        </MenuItem>
        <MenuItem danger onClick={() => setOpen("delete")}><Trash2 aria-hidden size={15} />{models.remove}</MenuItem>
      </RowMenu>
      <Dialog open={open === "edit"} onClose={close} returnTo={trigger} title={models.editTitle(name)}>
        <EditModel model={model} onDone={close} />
      </Dialog>
      <ConfirmDialog
        open={open === "delete"} onClose={close} returnTo={trigger} title={models.deleteTitle(name)} text={models.deleteText}
        action={models.delete} run={() => remove.mutateAsync(undefined)} done={models.deleted(name)}
      />
    </>
  );
}

function EditModel({ model, onDone }: { model: Model; onDone: () => void }) {
  const update = useUpdateModel(model);
  return (
    <ModelForm
      model={model} onCancel={onDone}
      onSubmit={async ({ provider: _, model_id: __, ...body }) => {
        await update.mutateAsync(body);
        toast(modelTexts.saved(nameOf(model)));
        onDone();
      }}
    />
  );
}
