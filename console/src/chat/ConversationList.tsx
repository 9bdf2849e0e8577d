import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { buttonClass } from "../parts/Button";
import { FilterField } from "../parts/FilterField";
import { Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import { PAGE_SIZE, useConversations } from "./api";
import styles from "./ChatPage.module.css";

/** The user's conversations, the most recently used first. */
export function ConversationList({ openId }: { openId?: string }) {
  const chat = chatTexts;
  const { page = 1, search } = useSearch({ strict: false });
  const navigate = useNavigate();
  const list = useConversations(page, search);
  const { data } = list;
  const place = (at: number) => ({ ...(at > 1 && { page: at }), ...(search !== undefined && { search }) });
  return (
    <div className={styles["list"]}>
      <Panel
        title={chat.conversations}
        actions={openId !== undefined && <Link to="/chat" className={buttonClass("quiet", "icon")} aria-label={chat.new} title={chat.new}><Plus aria-hidden /></Link>}
      >
        <div className={styles["search"]}>
          <FilterField
            label={chat.search} placeholder={chat.search} value={search}
            onChange={(next) => void navigate({ to: ".", search: next === undefined ? {} : { search: next } })}
          />
        </div>
        {list.error && data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : data === undefined ? (
          <div className={styles["bars"]} role="status" aria-label={texts.loading}><Skeleton width="80%" /><Skeleton width="60%" /><Skeleton width="70%" /></div>
        ) : data.conversations.length === 0 ? (
          <p className={styles["none"]}>{search === undefined ? chat.empty : chat.noneFound}</p>
        ) : (
          <ul className={styles["entries"]}>
            {data.conversations.map(({ id, title, updated_at: updated }) => (
              <li key={id}>
                <Link
                  to="/chat/$conversationId" params={{ conversationId: id }} search={place(page)} className={styles["entry"]}
                  aria-current={id === openId ? "page" : undefined}
                >
                  <span className={styles["name"]}>{title ?? chat.untitled}</span>
                  <span className={styles["when"]}><Time at={updated} as="relative" /></span>
                </Link>
              </li>
            ))}
          </ul>
        )}
        {data !== undefined && (data.total > PAGE_SIZE || page > 1) && (
          <Pager
            page={page} size={PAGE_SIZE} total={data.total}
            onPage={(next) => void navigate({ to: ".", search: place(next) })}
          />
        )}
      </Panel>
    </div>
  );
}
