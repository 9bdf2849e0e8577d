/** Second factors in the middle of a call: a call that needs one waits until the dialog of the shell has it. */

type Answer = (verified: boolean) => void;

let open: ((answer: Answer) => void) | null = null;
let waiting: Promise<boolean> | null = null;

/** Registers the dialog. `ask` is called with what the dialog calls at its end. */
export function setStepUpDialog(ask: (answer: Answer) => void): () => void {
  open = ask;
  return () => {
    open = null;
  };
}

/** Whether the user has verified a second factor now. Calls that wait together share one dialog. */
export function stepUp(): Promise<boolean> {
  if (open === null) return Promise.resolve(false);
  const ask = open;
  waiting ??= new Promise<boolean>((resolve) => ask(resolve)).finally(() => {
    waiting = null;
  });
  return waiting;
}
