import type { UseMutationResult } from "@tanstack/react-query";
import { Download, type LucideIcon } from "lucide-react";
import { report } from "./report";
import { Button } from "./Button";
import { saveFile } from "./download";

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
      onClick={() => report(file.mutateAsync(), (content) => saveFile(name, content as Blob))}
    >
      <Icon aria-hidden />{label}
    </Button>
  );
}
