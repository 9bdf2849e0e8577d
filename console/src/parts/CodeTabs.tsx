import { Tabs } from "@base-ui/react/tabs";
import styles from "./CodeTabs.module.css";
import { CopyButton } from "./Copy";
import { isSelected } from "./selection";

/** Tabs with versions of a program, such as one for each language. `onCopied` is called when the user has copied one, or a
 * selection with the `secret` that they contain. */
export function CodeTabs({ label, programs, secret, onCopied }: {
  label: string;
  programs: readonly { name: string; code: string }[];
  secret?: string;
  onCopied?: () => void;
}) {
  return (
    <Tabs.Root defaultValue={programs[0]?.name} className={styles["root"]} onCopy={() => secret !== undefined && isSelected(secret) && onCopied?.()}>
      <Tabs.List className={styles["list"]} aria-label={label}>
        {programs.map(({ name }) => (
          <Tabs.Tab key={name} value={name} className={styles["tab"]}>{name}</Tabs.Tab>
        ))}
      </Tabs.List>
      {programs.map(({ name, code }) => (
        <Tabs.Panel key={name} value={name} className={styles["panel"]}>
          <pre className={styles["code"]} tabIndex={0} aria-label={name}><code>{code}</code></pre>
          <span className={styles["copy"]}><CopyButton text={code} onCopied={onCopied} /></span>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}
