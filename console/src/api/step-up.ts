/** Verifies a second factor during a request. A request that needs one waits until the shell's dialog has verified it
 * or is closed. */

type Answer = (verified: boolean) => void;

let open: ((answer: Answer) => void) | null = null;
let waiting: Promise<boolean> | null = null;

/** Registers the dialog. `ask` opens the dialog, which calls `answer` when it closes. Returns a function that removes
 * the registration. */
export function setStepUpDialog(ask: (answer: Answer) => void): () => void {
  open = ask;
  return () => {
    open = null;
  };
}

/** Opens the dialog, and returns whether the user has verified a second factor. Concurrent calls share one dialog. */
export function stepUp(): Promise<boolean> {
  if (open === null) return Promise.resolve(false);
  const ask = open;
  waiting ??= new Promise<boolean>((resolve) => ask(resolve)).finally(() => {
    waiting = null;
  });
  return waiting;
}
