import { useId, useState } from "react";
import { ApiError } from "../api/errors";
import type { Schemas } from "../api/client";
import { Button } from "../parts/Button";
import { classes } from "../parts/classes";
import { TextField } from "../parts/fields";
import { errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { signInTexts } from "../texts/sign-in";
import { useReadMetadata } from "./api";
import styles from "./SignInPage.module.css";

/** Reads metadata from an address or a file. */
export function MetadataReader({ onRead }: { onRead: (metadata: Schemas["IdpMetadata"]) => void }) {
  const signIn = signInTexts;
  const read = useReadMetadata();
  const [url, setUrl] = useState("");
  const [fault, setFault] = useState<{ source: "url" | "xml"; message: string } | null>(null);
  const id = useId();

  async function start(source: "url" | "xml", content: Promise<string>) {
    setFault(null);
    try {
      onRead(await read.mutateAsync({ [source]: await content }));
      toast(signIn.metadataRead);
    } catch (error) {
      const message = error instanceof ApiError ? Object.values(error.fields)[0] : undefined;
      setFault({ source, message: message ?? errorText(error) });
    }
  }
  const fetchUrl = () => void start("url", Promise.resolve(url.trim()));

  return (
    <fieldset className={classes(styles["group"], styles["source"])}>
      <legend className={styles["hidden"]}>{signIn.metadata}</legend>
      <div className={styles["line"]}>
        <TextField
          label={signIn.theirMetadataUrl} type="url" autoComplete="off" spellCheck={false} value={url}
          fault={fault?.source === "url" ? fault.message : undefined} onChange={({ target }) => setUrl(target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            // Without this, Enter would submit the surrounding form.
            event.preventDefault();
            if (url.trim() !== "") fetchUrl();
          }}
        />
        <Button busy={read.isPending} disabled={url.trim() === ""} onClick={fetchUrl}>{signIn.read}</Button>
      </div>
      <div className={styles["file"]}>
        <label className={styles["name"]} htmlFor={id}>{signIn.metadataFile}</label>
        <input
          id={id} type="file" accept=".xml,application/xml,text/xml,application/samlmetadata+xml"
          aria-describedby={fault?.source === "xml" ? `${id}-fault` : undefined}
          onChange={({ target }) => {
            const file = target.files?.[0];
            if (file !== undefined) void start("xml", file.text());
            // Clear the field, so that the user can select the same file again after changing it.
            target.value = "";
          }}
        />
        {fault?.source === "xml" && <p className={styles["fault"]} id={`${id}-fault`} role="alert">{fault.message}</p>}
      </div>
    </fieldset>
  );
}
