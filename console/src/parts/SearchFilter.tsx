import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { texts } from "../texts";
import { classes } from "./classes";
import fields from "./fields.module.css";
import styles from "./SearchFilter.module.css";
import { errorText } from "./states";
import { useTyped } from "./useTyped";

export interface Choice {
  id: string;
  name: string;
  detail?: string | null | undefined;
}

export interface Choices {
  data: Choice[] | undefined;
  error: Error | null;
}

const LOADING: Choices = { data: undefined, error: null };

/** A filter with a search on the server while the user types. `useChoices` is a hook that returns the first matches.
 * Its argument is null while the list is closed. An empty field means no filter. */
export function SearchFilter({ label, placeholder, chosen, useChoices, onChoose }: {
  label: string;
  placeholder: string;
  chosen: Choice | undefined;
  useChoices: (search: string | null) => Choices;
  onChoose: (choice: Choice | undefined) => void;
}) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  /** Null while the field shows the chosen value. */
  const [typed, setTyped] = useState<string | null>(null);
  const [active, setActive] = useState(0);
  const query = typed?.trim() ?? "";
  const search = useTyped(query) ?? "";
  const matches = useChoices(isOpen ? search : null);
  // The search has not started for the latest text yet.
  const choices = query === search ? matches : LOADING;
  const options = (isOpen && choices.data) || [];

  function close() {
    setOpen(false);
    setTyped(null);
    setActive(0);
  }
  function choose(choice: Choice | undefined) {
    close();
    onChoose(choice);
  }
  function type(text: string) {
    setTyped(text);
    setOpen(true);
    setActive(0);
    if (text === "" && chosen !== undefined) onChoose(undefined);
  }
  function onKey(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      if (!isOpen) setOpen(true);
      else if (options.length > 0) setActive((active + step + options.length) % options.length);
    } else if (event.key === "Enter" && isOpen) {
      const option = options[active];
      if (option !== undefined) choose(option);
    } else if (event.key === "Escape" && isOpen) close();
    else return;
    event.preventDefault();
  }

  return (
    <span className={styles["frame"]}>
      <input
        role="combobox" aria-label={label} aria-expanded={isOpen} aria-autocomplete="list" autoComplete="off" spellCheck={false} autoCapitalize="none"
        aria-controls={options.length > 0 ? `${id}-list` : undefined}
        aria-activedescendant={options.length > 0 ? `${id}-${active}` : undefined}
        placeholder={placeholder} value={typed ?? chosen?.name ?? ""}
        className={classes(fields["input"], fields["compact"], styles["field"], chosen !== undefined && styles["active"])}
        onChange={({ target }) => type(target.value)} onClick={() => setOpen(true)} onBlur={close} onKeyDown={onKey}
        onFocus={({ target }) => target.select()}
      />
      {isOpen && (
        // Keep the focus in the field when the user presses on the list.
        <div className={styles["popup"]} onMouseDown={(event) => event.preventDefault()}>
          <p className={styles["status"]} role="status">{statusOf(choices)}</p>
          {options.length > 0 && (
            <ul role="listbox" id={`${id}-list`} aria-label={label}>
              {options.map((choice, at) => (
                <li
                  key={choice.id} id={`${id}-${at}`} role="option" aria-selected={choice.id === chosen?.id} className={styles["item"]}
                  data-active={at === active || undefined} onMouseMove={() => setActive(at)} onClick={() => choose(choice)}
                >
                  <span className={styles["name"]}>{choice.name}</span>
                  {choice.detail && choice.detail !== choice.name && <span className={styles["detail"]}>{choice.detail}</span>}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </span>
  );
}

function statusOf({ data, error }: Choices): ReactNode {
  if (error !== null && data === undefined) return errorText(error);
  if (data === undefined) return texts.loading;
  return data.length === 0 ? texts.choices.none : null;
}
