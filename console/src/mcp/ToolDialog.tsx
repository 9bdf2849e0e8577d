import { Check, X } from "lucide-react";
import { useState } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/Copy";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { CheckboxField } from "../parts/fields";
import { ErrorState, errorText, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { switchTexts } from "../texts/switches";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Tool, useDecide, useServer, useSetApprovalRequired, useTool } from "./api";
import { Definition, Differences } from "./Definition";
import styles from "./mcp.module.css";
import { McpSwitchButton } from "./SwitchButton";
import { ToolBadges } from "./ToolsPage";

/** A tool with its definitions. Administrators decide about the definition that the dialog shows. */
export function ToolDialog({ serverId, toolId, onClose }: { serverId: string | undefined; toolId: string | undefined; onClose: () => void }) {
  const isOpen = serverId !== undefined && toolId !== undefined;
  return isOpen ? <OpenTool key={toolId} serverId={serverId} toolId={toolId} onClose={onClose} /> : null;
}

function OpenTool({ serverId, toolId, onClose }: { serverId: string; toolId: string; onClose: () => void }) {
  const tool = useTool(serverId, toolId);
  return (
    <Dialog open onClose={onClose} title={tool.data?.name ?? mcpTexts.tool} wide>
      {tool.error && tool.data === undefined ? (
        <ErrorState error={tool.error} onRetry={() => void tool.refetch()} />
      ) : tool.data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : (
        <Details latest={tool.data} onClose={onClose} />
      )}
    </Dialog>
  );
}

/** Shows the definition that was loaded first, until the reader asks for another one. A decision is therefore always
 * about a definition that the reader has seen. `latest` is the tool as it was loaded last. */
function Details({ latest, onClose }: { latest: Tool; onClose: () => void }) {
  const mcp = mcpTexts;
  const [first, setFirst] = useState(latest);
  const isReplaced = latest.hash !== first.hash;
  const tool = isReplaced ? first : latest;
  const { administers } = useRights();
  const server = useServer(tool.server_id);
  const isChanged = tool.difference.length > 0;
  return (
    <>
      <div className={styles["facts"]}><Facts>
        <Fact name={mcp.status}><ToolBadges tool={tool} /></Fact>
        <Fact name={mcp.server}>{server.data?.name ?? texts.none}</Fact>
        <Fact name={mcp.present}><span className={styles["copied"]}><code className={styles["hash"]}>{tool.hash}</code><CopyButton text={tool.hash} /></span></Fact>
        <Fact name={mcp.approvedAt}>{tool.approved_at === null ? mcp.notApproved : <Time at={tool.approved_at} />}</Fact>
        {tool.approved_hash !== null && tool.approved_hash !== tool.hash && (
          <Fact name={mcp.approvedHash}><code className={styles["hash"]}>{tool.approved_hash}</code></Fact>
        )}
        {tool.missing_since !== null && <Fact name={mcp.missingSince}><Time at={tool.missing_since} /></Fact>}
        {tool.switched_off_at !== null && (
          <Fact name={mcp.stopped}>
            {tool.switched_off_reason !== null && switchTexts.reasons[tool.switched_off_reason]}, <Time at={tool.switched_off_at} as="relative" />
          </Fact>
        )}
      </Facts></div>
      {isChanged && (
        <>
          <h3 className={styles["heading"]}>{mcp.changes}</h3>
          <Differences difference={tool.difference} />
        </>
      )}
      {isChanged ? (
        <details className={styles["complete"]}>
          <summary>{mcp.presentDefinition}</summary>
          <Definition definition={tool.definition} />
        </details>
      ) : (
        <>
          <h3 className={styles["heading"]}>{mcp.definition}</h3>
          <Definition definition={tool.definition} />
        </>
      )}
      {isChanged && tool.approved_definition !== null && (
        <details className={styles["complete"]}>
          <summary>{mcp.approvedDefinition}</summary>
          <Definition definition={tool.approved_definition} />
        </details>
      )}
      <p className={styles["note"]}>{mcp.hidden}</p>
      {administers && <Settings tool={latest} />}
      {isReplaced && (
        <div className={styles["replaced"]} role="alert">
          <p>{mcp.replacedDefinition}</p>
          <Button onClick={() => setFirst(latest)}>{mcp.showReplacement}</Button>
        </div>
      )}
      {administers && !isReplaced && <Decision tool={tool} onClose={onClose} />}
    </>
  );
}

function Settings({ tool }: { tool: Tool }) {
  const mcp = mcpTexts;
  const setRequired = useSetApprovalRequired(tool);
  const change = (required: boolean) =>
    setRequired.mutate(required, {
      onSuccess: () => toast(mcp.approvalSet(tool.name, required)),
      onError: (error) => toast(errorText(error), "failed"),
    });
  return (
    <div className={styles["settings"]}>
      <CheckboxField
        label={mcp.approvalRequired} hint={mcp.approvalRequiredHint} checked={setRequired.isPending ? setRequired.variables : tool.approval_required}
        onChange={({ target }) => change(target.checked)}
      />
      <McpSwitchButton target={tool} />
    </div>
  );
}

/** Approves or rejects the definition with the shown hash. If the API refuses the decision, the tool is loaded again. */
function Decision({ tool, onClose }: { tool: Tool; onClose: () => void }) {
  const mcp = mcpTexts;
  const decide = useDecide(tool);
  const isApproved = tool.status === "approved" && tool.approved_hash === tool.hash;
  const run = (approves: boolean) =>
    decide.mutate(approves, {
      onSuccess: () => {
        toast(approves ? mcp.approved(tool.name) : mcp.rejected(tool.name));
        onClose();
      },
      onError: (error) => toast(errorText(error), "failed"),
    });
  return (
    <>
      <p className={styles["note"]}>{mcp.decideText(tool.hash)}</p>
      <DialogActions>
        {tool.status !== "rejected" && <Button look="danger" busy={decide.isPending} onClick={() => run(false)}><X aria-hidden />{mcp.reject}</Button>}
        {!isApproved && <Button look="primary" busy={decide.isPending} onClick={() => run(true)}><Check aria-hidden />{mcp.approve}</Button>}
      </DialogActions>
    </>
  );
}
