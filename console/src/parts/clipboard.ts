import { texts } from "../texts";
import { toast } from "./toasts";

/** Copies a text, and returns whether it was copied. If not, a message says so: a browser can refuse, and a page without
 * TLS on another host has no `navigator.clipboard`. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast(texts.notCopied, "failed");
    return false;
  }
}
