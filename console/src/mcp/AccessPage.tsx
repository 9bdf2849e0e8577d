import { getRouteApi, Link } from "@tanstack/react-router";
import { Cable, Grid3x3 } from "lucide-react";
import { useRights } from "../api/queries";
import { Button, buttonClass } from "../parts/Button";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter } from "../parts/filters";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { NewRuleButton } from "../parts/rules";
import { type Choices, SearchFilter } from "../parts/SearchFilter";
import { EmptyState, ErrorState } from "../parts/states";
import { toast } from "../parts/toasts";
import { useUnsaved } from "../parts/unsaved";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Failure, type MatrixFilters, PAGE_SIZE, SUBJECTS_SIZE, useAddRule, useEdits, useMatrix, useSubjectName, useSubjectOptions } from "./access";
import { AccessMatrix, nameOf } from "./AccessMatrix";
import { useServer, useServers } from "./api";
import { SUBJECT_TYPES, type SubjectType } from "./choices";
import styles from "./mcp.module.css";
import { McpViews } from "./McpViews";
import { RuleForm } from "./RuleForm";
import { ServerFilter } from "./ServerFilter";

const route = getRouteApi("/mcp-servers/access");

/** The access rules of a server as a table of tools and subjects, with the tools that one caller can call. */
export function AccessPage() {
  const mcp = mcpTexts;
  const { administers } = useRights();
  const { page = 1, subject_page: subjectPage = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const servers = useServers(undefined, 1);
  const named = useServer(filters.server);
  // A link can name a server that was removed.
  const server = named.data ?? (filters.server === undefined || named.isError ? servers.data?.rows[0] : undefined);
  // The filters stay while the chosen server is loaded.
  const shown = server?.id ?? filters.server;
  const matrix = useMatrix({ ...filters, server: server?.id }, page, subjectPage);
  const edits = useEdits(server?.id ?? "", matrix.data?.rules ?? []);
  useUnsaved(edits.count > 0);
  const updateFilters = (changed: MatrixFilters) => void navigate({ search: { ...filters, ...changed } });
  const isFiltered = filters.search !== undefined || filters.subjects !== undefined || filters.caller_type !== undefined;
  const error = servers.error ?? matrix.error;
  return (
    <Page
      wide title={mcp.accessTitle} views={<McpViews />}
      actions={administers && server !== undefined && (
        <>
          {edits.count > 0 && <Button disabled={edits.save.isPending} onClick={edits.discard}>{mcp.discard}</Button>}
          <Button
            disabled={edits.count === 0} busy={edits.save.isPending}
            onClick={() => edits.save.mutate(undefined, { onSuccess: ({ saved }) => saved > 0 && toast(mcp.saved(saved)) })}
          >
            {mcp.save(edits.count)}
          </Button>
          <AddRule server={server.id} />
        </>
      )}
      filterBar={shown !== undefined && (
        <>
          <ServerFilter required value={shown} onChange={(chosen) => void navigate({ search: { ...filters, server: chosen, search: undefined } })} />
          <FilterField label={mcp.searchTools} placeholder={mcp.searchTools} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <ChoiceFilter
            label={mcp.subjectType} any={mcp.anySubject} values={SUBJECT_TYPES} nameOf={(type) => mcp.subjects[type]} value={filters.subjects}
            onChange={(subjects) => updateFilters({ subjects })}
          />
          <ChoiceFilter
            label={mcp.callerType} any={mcp.noCaller} values={SUBJECT_TYPES} nameOf={(type) => mcp.subjects[type]} value={filters.caller_type}
            onChange={(caller_type) => updateFilters({ caller_type, caller: undefined })}
          />
          {filters.caller_type !== undefined && (
            <CallerFilter key={filters.caller_type} type={filters.caller_type} value={filters.caller} onChange={(caller) => updateFilters({ caller })} />
          )}
          {isFiltered && <Button look="quiet" size="small" onClick={() => void navigate({ search: { server: filters.server } })}>{texts.clear}</Button>}
        </>
      )}
    >
      {server !== undefined && <p className={styles["text"]}>{server.access === "open" ? mcp.openText : mcp.restrictedText} {mcp.accessText}</p>}
      <Failures failures={edits.save.data?.failures ?? []} />
      <Panel label={mcp.accessTitle}>
        {error && (servers.data === undefined || matrix.data === undefined) ? (
          <ErrorState error={error} onRetry={() => void Promise.all([servers.refetch(), matrix.refetch()])} />
        ) : servers.data?.total === 0 ? (
          <EmptyState icon={Cable} title={mcp.empty} text={mcp.noServers}><Link to="/mcp-servers" className={buttonClass()}>{mcp.title}</Link></EmptyState>
        ) : matrix.data?.total_subjects === 0 && filters.caller === undefined ? (
          <EmptyState icon={Grid3x3} title={mcp.noRules} text={mcp.noRulesText} />
        ) : (
          <>
            <Matrix matrix={matrix} edits={edits} type={filters.caller_type} caller={filters.caller} />
            {matrix.data !== undefined && (
              <div className={styles["pagers"]}>
                {matrix.data.total_subjects > SUBJECTS_SIZE && (
                  <Pager
                    name={mcp.subjectPages} page={subjectPage} size={SUBJECTS_SIZE} total={matrix.data.total_subjects}
                    onPage={(next) => void navigate({ search: (now) => ({ ...now, subject_page: next }) })}
                  />
                )}
                <Pager
                  name={mcp.toolPages} page={page} size={PAGE_SIZE} total={matrix.data.total}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
                />
              </div>
            )}
          </>
        )}
      </Panel>
    </Page>
  );
}

function Matrix({ matrix, edits, type, caller }: {
  matrix: ReturnType<typeof useMatrix>;
  edits: ReturnType<typeof useEdits>;
  type: SubjectType | undefined;
  caller: string | undefined;
}) {
  const name = useSubjectName(type ?? "user", caller ?? "");
  return (
    <AccessMatrix matrix={matrix.data} edits={edits} caller={type === undefined || caller === undefined ? undefined : name} stale={matrix.isPlaceholderData} />
  );
}

function CallerFilter({ type, value, onChange }: { type: SubjectType; value: string | undefined; onChange: (id: string | undefined) => void }) {
  const name = useSubjectName(type, value ?? "");
  function useChoices(search: string | null): Choices {
    const options = useSubjectOptions(type, search);
    return { data: options.data?.rows, error: options.error };
  }
  return (
    <SearchFilter
      label={mcpTexts.caller} placeholder={mcpTexts.callerPlaceholder} chosen={value === undefined ? undefined : { id: value, name }}
      useChoices={useChoices} onChoose={(choice) => onChange(choice?.id)}
    />
  );
}

function AddRule({ server }: { server: string }) {
  const add = useAddRule(server);
  return (
    <NewRuleButton
      label={mcpTexts.addRule} title={mcpTexts.addRuleTitle}
      editor={(close) => (
        <RuleForm
          server={server} onCancel={close}
          onSubmit={async (rule) => {
            await add.mutateAsync(rule);
            toast(mcpTexts.ruleAdded);
            close();
          }}
        />
      )}
    />
  );
}

/** The changes that could not be saved. */
function Failures({ failures }: { failures: readonly Failure[] }) {
  if (failures.length === 0) return null;
  return (
    <div className={styles["failures"]} role="alert">
      <p>{mcpTexts.failed(failures.length)}</p>
      <ul>
        {failures.map(({ edit: { subject, tool }, message }) => {
          const cell = mcpTexts.cell(tool ?? mcpTexts.allTools, nameOf(subject));
          return <li key={cell}>{mcpTexts.failure(cell, message)}</li>;
        })}
      </ul>
    </div>
  );
}
