import { useState } from "react";
import { Button } from "../parts/Button";
import { TextField } from "../parts/fields";
import { errorText } from "../parts/states";
import { useTyped } from "../parts/useTyped";
import { userTexts } from "../texts/users";
import { MAX_TOTAL, nameOf, type User, useUsers } from "./api";
import styles from "./UserPicker.module.css";

const SHOWN = 5;

/** Searches for users, and shows the first matches, each with a button. Users in `taken` have the text `takenText`
 * instead of the button. */
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
  const search = useTyped(typed);
  return (
    <div className={styles["picker"]}>
      <TextField
        label={label} hint={hint} fault={fault} type="search" autoComplete="off" spellCheck={false} autoCapitalize="none"
        placeholder={userTexts.searchPlaceholder} value={typed} onChange={({ target }) => setTyped(target.value)}
        // Without this, Enter would submit the surrounding form.
        onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
      />
      {search !== undefined && <Matches search={search} action={action} taken={taken} takenText={takenText} onChoose={onChoose} />}
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
  const users = useUsers({ search }, "name", 1, SHOWN);
  const { data } = users;
  return (
    <div role="status" className={styles["result"]}>
      {users.error && data === undefined ? (
        <p className={styles["note"]}>{errorText(users.error)}</p>
      ) : data?.rows.length === 0 ? (
        <p className={styles["note"]}>{userTexts.noneMatch}</p>
      ) : (
        <ul className={styles["matches"]}>
          {data?.rows.map((user) => (
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
      {data !== undefined && data.total > SHOWN && (
        <p className={styles["note"]}>{data.total >= MAX_TOTAL ? userTexts.manyMatch : userTexts.moreMatch(data.total - SHOWN)}</p>
      )}
    </div>
  );
}
