import { useEffect, useState } from "react";
import { Button } from "../parts/Button";
import { TextField } from "../parts/fields";
import { errorText } from "../parts/states";
import { texts } from "../texts";
import { nameOf, type User, useUsers } from "./api";
import styles from "./UserPicker.module.css";

const TYPING_MS = 250;
const SHOWN = 5;

/** Searches users, and offers each of the first matches with a button. Those of `taken` show `takenText` instead. */
export function UserPicker({ label, hint, fault, action, taken, takenText = "", onChoose }: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  action: string;
  taken?: ReadonlySet<string>;
  takenText?: string;
  onChoose: (user: User) => void;
}) {
  const [typed, setTyped] = useState("");
  const [search, setSearch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSearch(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <div className={styles["picker"]}>
      <TextField
        label={label} hint={hint} fault={fault} type="search" autoComplete="off" spellCheck={false} autoCapitalize="none"
        placeholder={texts.users.searchPlaceholder} value={typed} onChange={({ target }) => setTyped(target.value)}
        // Enter would submit the form around it.
        onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
      />
      {search !== "" && <Matches search={search} action={action} taken={taken} takenText={takenText} onChoose={onChoose} />}
    </div>
  );
}

function Matches({ search, action, taken, takenText, onChoose }: {
  search: string;
  action: string;
  taken: ReadonlySet<string> | undefined;
  takenText: string;
  onChoose: (user: User) => void;
}) {
  const users = useUsers({ search }, 1);
  const { data } = users;
  return (
    <div role="status" className={styles["result"]}>
      {users.error && data === undefined ? (
        <p className={styles["note"]}>{errorText(users.error)}</p>
      ) : data?.items.length === 0 ? (
        <p className={styles["note"]}>{texts.users.noneMatch}</p>
      ) : (
        <ul className={styles["matches"]}>
          {data?.items.slice(0, SHOWN).map((user) => (
            <li key={user.id} className={styles["match"]}>
              <span className={styles["names"]}>
                <span className={styles["name"]}>{nameOf(user)}</span>
                {user.email !== null && user.email !== nameOf(user) && <span className={styles["email"]}>{user.email}</span>}
              </span>
              {taken?.has(user.id) === true
                ? <span className={styles["email"]}>{takenText}</span>
                : <Button size="small" aria-label={`${action} ${nameOf(user)}`} onClick={() => onChoose(user)}>{action}</Button>}
            </li>
          ))}
        </ul>
      )}
      {data !== undefined && data.total > SHOWN && <p className={styles["note"]}>{texts.users.moreMatch(data.total - SHOWN)}</p>}
    </div>
  );
}
