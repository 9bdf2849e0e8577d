import { useState } from "react";

/** State of a dialog. It is reset to `initial` each time the dialog opens. It is not reset when the dialog closes, so
 * the content stays visible during the closing animation. */
export function useResetOnOpen<T>(open: boolean, initial: T): readonly [T, (value: T) => void] {
  const [value, setValue] = useState(initial);
  const [wasOpen, setWasOpen] = useState(open);
  if (open !== wasOpen) {
    setWasOpen(open);
    if (open) setValue(initial);
  }
  return [value, setValue] as const;
}
