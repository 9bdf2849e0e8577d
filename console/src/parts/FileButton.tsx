import type { UseMutationResult } from "@tanstack/react-query";
import { Download, type LucideIcon } from "lucide-react";
import { Button } from "./Button";
import { saveFile } from "./download";
import { errorText } from "./states";
import { toast } from "./toasts";

/** A button that downloads a file from the API and lets the browser save it. */
export function FileButton({ file, name, icon: Icon = Download, label }: {
  file: UseMutationResult<unknown, Error, void>;
  name: string;
  icon?: LucideIcon;
  label: string;
}) {
  return (
    <Button
      busy={file.isPending}
      onClick={() => file.mutate(undefined, {
        onSuccess: (content) => saveFile(name, content as Blob),
        onError: (error) => toast(errorText(error), "failed"),
      })}
    >
      <Icon aria-hidden />{label}
    </Button>
  );
}
