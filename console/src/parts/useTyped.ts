import { useEffect, useState } from "react";

const TYPING_MS = 250;

/** Returns the trimmed text after the user has stopped typing for a moment, or undefined if the text is empty.
 * Until then, it returns `initial`. */
export function useTyped(typed: string, initial = ""): string | undefined {
  const [search, setSearch] = useState(initial);
  useEffect(() => {
    const timer = setTimeout(() => setSearch(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return search || undefined;
}
