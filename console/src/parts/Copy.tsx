import { Check, Copy as CopyIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { texts } from "../texts";
import { Button } from "./Button";
import { copyText } from "./clipboard";

const CONFIRMATION_MS = 1600;

/** A button that copies a text. It shows a confirmation for a moment. */
export function CopyButton({ text, label = texts.copy, size = "icon", autoFocus, onCopied }: {
  text: string;
  label?: string;
  size?: "icon" | "small";
  autoFocus?: boolean;
  onCopied?: (() => void) | undefined;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), CONFIRMATION_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const Icon = copied ? Check : CopyIcon;
  const shown = copied ? texts.copied : label;
  return (
    <Button
      look={size === "icon" ? "quiet" : "plain"}
      size={size}
      autoFocus={autoFocus}
      aria-label={shown}
      onClick={() => void copyText(text).then((isCopied) => {
        if (!isCopied) return;
        setCopied(true);
        onCopied?.();
      })}
    >
      <Icon aria-hidden size={14} />
      {size === "small" && shown}
    </Button>
  );
}
