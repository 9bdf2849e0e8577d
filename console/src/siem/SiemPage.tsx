import { RadioTower } from "lucide-react";
import { useRights } from "../api/queries";
import { Fact, Facts } from "../parts/Facts";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { siemTexts } from "../texts/siem";
import { type Siem, useSiem } from "./api";
import { EditButton } from "./EditButton";
import { ForwardingPanel } from "./ForwardingPanel";
import { PauseButton } from "./PauseButton";
import styles from "./SiemPage.module.css";
import { TestDelivery } from "./TestDelivery";

/** The receiver of the organization's records, and the state of forwarding. */
export function SiemPage() {
  const siem = siemTexts;
  const { administers } = useRights();
  const receiver = useSiem();
  const { data } = receiver;
  return (
    <Page title={siem.title} actions={administers && data !== undefined && <EditButton siem={data} />}>
      {receiver.error && data === undefined ? (
        <Panel label={siem.title}><ErrorState error={receiver.error} onRetry={() => void receiver.refetch()} /></Panel>
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : data.type === null ? (
        <Panel label={siem.title}>
          <EmptyState icon={RadioTower} title={siem.empty} text={siem.emptyText} />
        </Panel>
      ) : (
        <div className={styles["panels"]}>
          <ForwardingPanel siem={data} />
          <Panel title={siem.receiver} actions={administers && <PauseButton siem={data} />}>
            <Receiver siem={data} />
            {administers && <TestDelivery />}
          </Panel>
        </div>
      )}
    </Page>
  );
}

function Receiver({ siem: { type, url, host, port, index, ca_certificate: authorities, token_configured: hasToken, secret_configured: hasSecret, updated_at: updatedAt } }: { siem: Siem }) {
  const siem = siemTexts;
  const { organization: own, default: byDefault } = texts.sources;
  return (
    <Facts>
      {type !== null && <Fact name={siem.type} source={own}>{siem.types[type]}</Fact>}
      {url !== null && <Fact name={siem.url} source={own}>{url}</Fact>}
      {host !== null && <Fact name={siem.host} source={own}>{host}</Fact>}
      {port !== null && <Fact name={siem.port} source={own}>{port}</Fact>}
      {type === "hec" && <Fact name={siem.index} source={index === null ? byDefault : own}>{index ?? siem.collectorsIndex}</Fact>}
      {type === "syslog_tls" && (
        <Fact name={siem.authorities} source={authorities === null ? byDefault : own}>
          {authorities === null ? siem.systemAuthorities : siem.ownAuthorities}
        </Fact>
      )}
      {type === "hec" && <Fact name={siem.token} source={own}>{hasToken ? siem.stored : siem.missing}</Fact>}
      {type === "webhook" && <Fact name={siem.secret} source={own}>{hasSecret ? siem.stored : siem.missing}</Fact>}
      {updatedAt !== null && <Fact name={siem.changed}><Time at={updatedAt} /></Fact>}
    </Facts>
  );
}
