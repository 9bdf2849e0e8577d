import { errorText } from "./states";
import { toast } from "./toasts";

/** Calls `onDone` with the result of an action, or shows its error. Unlike the callbacks of `mutate`, this also works if
 * the component that started the action is removed meanwhile, for example with a row that leaves a filtered list. */
export function report<Result>(action: Promise<Result>, onDone: (result: Result) => void): void {
  action.then(onDone, (error: unknown) => { toast(errorText(error), "failed"); });
}
