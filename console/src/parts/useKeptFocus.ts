import { type RefObject, useEffect } from "react";

/** If the focused element is removed, such as the menu of a deleted row, moves the focus to its dialog, or to `area` if
 * it was in no dialog. Otherwise, the keyboard user would start again at the beginning of the page. */
export function useKeptFocus(area: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    let last: Element | null = null;
    let dialog: HTMLElement | null = null;
    const remember = ({ target }: FocusEvent) => {
      last = target as Element;
      dialog = last.closest<HTMLElement>("[role=dialog]");
    };
    const observer = new MutationObserver(() => {
      if (last === null || last.isConnected || document.activeElement !== document.body) return;
      last = null;
      (dialog?.isConnected ? dialog : area.current)?.focus({ preventScroll: true });
    });
    document.addEventListener("focusin", remember);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      document.removeEventListener("focusin", remember);
      observer.disconnect();
    };
  }, [area]);
}
