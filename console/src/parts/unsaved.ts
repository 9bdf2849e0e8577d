/** Forms with unsaved changes, secrets that are shown once, and the question before they are lost. `shell/LeaveQuestion`
 * asks it. */
import { use, useEffect, useRef, useSyncExternalStore } from "react";
import { InDialog } from "./in-dialog";

interface Unsaved {
  /** The dialog that shows the form, or null if the page does. */
  dialog: string | null;
  isSecret: boolean;
}

const forms = new Set<Unsaved>();
const listeners = new Set<() => void>();
let closing: (() => void) | null = null;

function notify(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Registers a form with unsaved changes, or a secret that the user has not copied. Returns a function that removes it. */
export function registerUnsaved(dialog: string | null, isSecret = false): () => void {
  const form = { dialog, isSecret };
  forms.add(form);
  notify();
  return () => {
    if (forms.delete(form)) notify();
  };
}

/** Makes the console and the browser ask before the changes of a form are lost, or a secret that is shown once. Returns a
 * function that gives them up: nothing asks about them any more. */
export function useUnsaved(unsaved: boolean, isSecret = false): () => void {
  const dialog = use(InDialog);
  const remove = useRef<() => void>(null);
  useEffect(() => {
    if (!unsaved) return undefined;
    return (remove.current = registerUnsaved(dialog, isSecret));
  }, [unsaved, dialog, isSecret]);
  return () => remove.current?.();
}

/** Returns whether a form of the page or of a dialog has unsaved changes. */
export function hasUnsaved(): boolean {
  return forms.size > 0;
}

/** Returns whether a navigation loses unsaved changes. A form of the page stays while the path is the same. A dialog can
 * be closed by every change of the URL. */
export function losesUnsaved(path: string, nextPath: string): boolean {
  return path !== nextPath ? hasUnsaved() : [...forms].some(({ dialog }) => dialog !== null);
}

/** Calls `close`, which closes the dialog. If a form in the dialog has unsaved changes, asks first. */
export function closeDialog(dialog: string, close: () => void): void {
  const unsaved = [...forms].filter((form) => form.dialog === dialog);
  if (unsaved.length === 0) {
    close();
    return;
  }
  closing = () => {
    for (const form of unsaved) forms.delete(form);
    close();
  };
  notify();
}

/** Ends the question of `closeDialog`. If `leave` is true, the dialog closes. */
export function answerClosing(leave: boolean): void {
  const close = closing;
  closing = null;
  if (leave) close?.();
  notify();
}

/** Returns whether a form has unsaved changes, and renders again when this changes. */
export function useHasUnsaved(): boolean {
  return useSyncExternalStore(subscribe, hasUnsaved);
}

/** Returns whether a secret that the user has not copied is among what would be lost. */
export function useHasSecret(): boolean {
  return useSyncExternalStore(subscribe, () => [...forms].some(({ isSecret }) => isSecret));
}

/** Returns whether the user has asked to close a dialog with unsaved changes. */
export function useIsClosing(): boolean {
  return useSyncExternalStore(subscribe, () => closing !== null);
}
