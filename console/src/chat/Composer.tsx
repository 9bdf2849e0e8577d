import { Send, Square } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useId } from "react";
import { Button } from "../parts/Button";
import { SearchedFilterSelect } from "../parts/SearchedSelect";
import { useUnsaved } from "../parts/unsaved";
import { useIsUsable, useUsableModels } from "../models/usable";
import { chatTexts } from "../texts/chat";
import { AUTO_MODEL } from "./api";
import styles from "./ChatPage.module.css";

/** The form for a question. Enter sends the question, Shift+Enter starts a new line. `onStop` is set while an answer is
 * being written. The form then has a stop button instead of the send button. */
export function Composer({ draft, onDraft, model, onModel, defaultModel = false, busy = false, fault, field, onSend, onStop }: {
  draft: string;
  onDraft: (draft: string) => void;
  model: string;
  onModel: (model: string) => void;
  defaultModel?: boolean;
  busy?: boolean;
  fault?: ReactNode;
  field?: RefObject<HTMLTextAreaElement | null>;
  onSend: () => void;
  onStop?: (() => void) | undefined;
}) {
  const chat = chatTexts;
  const id = useId();
  const discard = useUnsaved(draft.trim() !== "" && !busy);

  function send() {
    if (draft.trim() === "" || busy || onStop !== undefined) return;
    discard();
    onSend();
  }

  function onKeyDown(event: KeyboardEvent) {
    // While the user composes text with an input method, Enter accepts a suggestion.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  }

  return (
    <form
      className={styles["composer"]} aria-label={chat.composer}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {fault !== undefined && <p className={styles["fault"]} role="alert">{fault}</p>}
      <label className={styles["hidden"]} htmlFor={id}>{chat.message}</label>
      <textarea
        id={id} {...(field && { ref: field })} className={styles["input"]} value={draft} rows={2} placeholder={chat.placeholder} autoFocus
        onChange={({ target }) => onDraft(target.value)} onKeyDown={onKeyDown}
      />
      <div className={styles["controls"]}>
        <ModelPicker model={model} onModel={onModel} defaultModel={defaultModel} />
        <span className={styles["hint"]}>{chat.keys}</span>
        {onStop === undefined ? (
          <Button look="primary" type="submit" busy={busy} aria-disabled={draft.trim() === "" || busy || undefined}><Send aria-hidden />{chat.send}</Button>
        ) : (
          <Button onClick={onStop}><Square aria-hidden />{chat.stop}</Button>
        )}
      </div>
    </form>
  );
}

/** Selects one of the models that the user may use. If the current model is no longer one of them, it stays in the list
 * until the user selects another one. */
function ModelPicker({ model, onModel, defaultModel }: { model: string; onModel: (model: string) => void; defaultModel: boolean }) {
  const chat = chatTexts;
  const isNamed = model !== "" && model !== AUTO_MODEL;
  const isUsable = useIsUsable(isNamed ? model : undefined);
  return (
    <span className={styles["model"]}>
      <SearchedFilterSelect
        label={chat.model} value={model} onChange={onModel} useOptions={useUsableModels}
        chosen={isNamed ? { id: model, name: isUsable === false ? chat.closedModel(model) : model } : undefined}
      >
        {defaultModel && <option value="">{chat.defaultModel}</option>}
        <option value={AUTO_MODEL}>{chat.autoModel}</option>
      </SearchedFilterSelect>
    </span>
  );
}
