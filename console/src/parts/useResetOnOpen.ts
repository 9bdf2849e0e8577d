import { useState } from "react";

/** State of a dialog that begins anew each time it opens. What was shown last stays while it closes. */
export function useResetOnOpen<T>(open: boolean, initial: T): readonly [T, (value: T) => void] {
  const [value, setValue] = useState(initial);
  const [wasOpen, setWasOpen] = useState(open);
  if (open !== wasOpen) {
    setWasOpen(open);
    if (open) setValue(initial);
  }
  return [value, setValue] as const;
}
