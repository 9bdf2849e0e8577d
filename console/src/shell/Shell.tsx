import { useQuery } from "@tanstack/react-query";
import { Outlet, useRouterState } from "@tanstack/react-router";
import { Menu as MenuIcon, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { openSession, SignedOut } from "../api/session";
import { Button } from "../parts/Button";
import { ErrorState } from "../parts/states";
import { Toaster } from "../parts/toasts";
import { useKeptFocus } from "../parts/useKeptFocus";
import { texts } from "../texts";
import { LeaveQuestion } from "./LeaveQuestion";
import { Navigation } from "./Navigation";
import styles from "./Shell.module.css";
import { StepUp } from "./StepUp";
import { UserMenu } from "./UserMenu";

/** The frame of all pages. It renders no page until the session is loaded. Without a session, the browser goes to the
 * sign-in page. */
export function Shell() {
  const session = useQuery({ queryKey: ["session"], queryFn: openSession, staleTime: Infinity });
  if (session.error && !(session.error instanceof SignedOut)) {
    return (
      <main className={styles["alone"]}>
        <ErrorState title={texts.errors.start} error={session.error} onRetry={() => void session.refetch()} />
      </main>
    );
  }
  return session.data === undefined ? <Starting /> : <Frame organization={session.data.organization.name} />;
}

function Starting() {
  return <main className={styles["alone"]} aria-busy><span className={styles["hidden"]} role="status">{texts.loading}</span></main>;
}

function Frame({ organization }: { organization: string }) {
  const [open, setOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => setOpen(false), [path]);
  const content = useRef<HTMLElement>(null);
  useKeptFocus(content);
  return (
    <div className={styles["shell"]}>
      <a className={styles["skip"]} href="#content">{texts.skip}</a>
      <header className={styles["top"]}>
        <Button
          look="quiet" size="icon" aria-expanded={open} aria-controls="navigation"
          aria-label={open ? texts.navigation.close : texts.navigation.open} onClick={() => setOpen(!open)}
        >
          {open ? <X aria-hidden /> : <MenuIcon aria-hidden />}
        </Button>
        <Brand organization={organization} />
      </header>
      <aside className={styles["side"]} id="navigation" data-open={open || undefined}>
        <Brand organization={organization} />
        <Navigation />
        <UserMenu />
      </aside>
      <main className={styles["main"]} id="content" tabIndex={-1} ref={content}><Outlet /></main>
      <StepUp />
      <LeaveQuestion />
      <Toaster />
    </div>
  );
}

function Brand({ organization }: { organization: string }) {
  return (
    <div className={styles["brand"]}>
      <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" />
      <span className={styles["names"]}>
        <span className={styles["product"]}>{texts.product}</span>
        <span className={styles["organization"]} title={organization}>{organization}</span>
      </span>
    </div>
  );
}
