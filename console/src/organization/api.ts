/** The organization: settings, feature flags, mail domains. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, dataOf, type Schemas } from "../api/client";
import { discardToken } from "../api/session";
import { changeOf, ifMatch, invalidateSettings, switchOf, versionedOf } from "../api/versions";

export type Domain = Schemas["AllowedDomain"];
type SettingsUpdate = Schemas["SettingsUpdate"];
export type FlagName = keyof NonNullable<SettingsUpdate["feature_flags"]>;

/** The flags in the order in which the page shows them. */
export const FLAGS: readonly FlagName[] = [
  "dlp_enabled", "credential_intelligence", "block_unreadable", "human_in_loop", "budget_enforcement", "cost_routing",
  "api_key_scoping", "outpost_enabled", "audit_log_streaming",
];

export function useSettings() {
  return useQuery({ queryKey: ["organization", "settings"], queryFn: () => dataOf(api.GET("/api/v1/admin/org/settings")) });
}

export function useDomains() {
  return useQuery({
    queryKey: ["organization", "domains"],
    queryFn: async () => (await dataOf(api.GET("/api/v1/admin/org/allowed-domains"))).entries,
  });
}

function useOrganizationChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all([invalidateSettings(client), client.invalidateQueries({ queryKey: ["session"] })]),
  });
}

export function useUpdateSettings() {
  return useOrganizationChange(async ({ updatedAt, ...body }: SettingsUpdate & { updatedAt: string }) => {
    const settings = await changeOf(ifMatch(updatedAt)["If-Match"], (header) => api.PUT("/api/v1/admin/org/settings", { params: { header }, body }));
    // The session contains the name of the organization, so it must be loaded again.
    discardToken();
    return settings;
  });
}

export function useSwitchFlag() {
  return useOrganizationChange(({ flag, enabled, updatedAt }: { flag: FlagName; enabled: boolean; updatedAt: string }) =>
    switchOf(ifMatch(updatedAt)["If-Match"], (header) =>
      api.PATCH("/api/v1/admin/org/feature-flags/{flag_name}", { params: { path: { flag_name: flag }, header }, body: { enabled } })));
}

export function useAddDomain() {
  return useOrganizationChange((domain: string) => dataOf(api.POST("/api/v1/admin/org/allowed-domains", { body: { domain, jit_provisioning: false, self_registration: false } })));
}

export function useVerifyDomain(domain: string) {
  return useOrganizationChange(() =>
    dataOf(api.POST("/api/v1/admin/org/allowed-domains/{domain}/verify", { params: { path: { domain } } })),
  );
}

export function useUpdateDomain(domain: string) {
  return useOrganizationChange((body: Schemas["DomainUpdate"]) =>
    dataOf(api.PATCH("/api/v1/admin/org/allowed-domains/{domain}", { params: { path: { domain } }, body })),
  );
}

export function useRemoveDomain(domain: string) {
  return useOrganizationChange(() =>
    dataOf(api.DELETE("/api/v1/admin/org/allowed-domains/{domain}", { params: { path: { domain } } })),
  );
}

export type Allowlist = Schemas["IpAllowlist"];
export type RequestFieldList = Schemas["RequestFields"];

export function useAllowlist() {
  return useQuery({ queryKey: ["organization", "ip-allowlist"], queryFn: () => versionedOf(api.GET("/api/v1/admin/org/ip-allowlist")) });
}

export function useUpdateAllowlist() {
  return useOrganizationChange(({ version, ...body }: Schemas["IpAllowlistUpdate"] & { version: string }) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/org/ip-allowlist", { params: { header }, body })));
}

export function useRequestFields() {
  return useQuery({ queryKey: ["organization", "request-fields"], queryFn: () => versionedOf(api.GET("/api/v1/admin/org/request-fields")) });
}

export function useUpdateRequestFields() {
  return useOrganizationChange(({ version, allowed }: { version: string; allowed: string[] }) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/org/request-fields", { params: { header }, body: { allowed } })));
}

export function useSendTestMail() {
  return useMutation({ mutationFn: () => dataOf(api.POST("/api/admin/mail/test")) });
}

const RESULT_REFRESH_MS = 1_000;
const RESULT_TIMEOUT_MS = 120_000;
const TEST_MAIL_RESULTS = ["mail.test_sent", "mail.test_failed"];

/** Returns the audit event with the result of a test mail, or undefined until there is one. `isLate` is true if there
 * was no result within the timeout, and the query has stopped. */
export function useTestMailResult(id: string | undefined) {
  const [lateId, setLateId] = useState<string>();
  const isLate = id !== undefined && lateId === id;
  useEffect(() => {
    const timer = setTimeout(() => setLateId(id), RESULT_TIMEOUT_MS);
    return () => clearTimeout(timer);
  }, [id]);
  const result = useQuery({
    queryKey: ["audit-events", "test-mail", id],
    enabled: id !== undefined,
    refetchInterval: ({ state }) => (isLate || hasResult(state.data) ? false : RESULT_REFRESH_MS),
    queryFn: async () => (await dataOf(api.GET("/v1/audit/events", { params: { query: { resource_id: id ?? "", resource_type: "mail" } } }))).events,
    select: (events) => events.find(({ action }) => TEST_MAIL_RESULTS.includes(action)),
  });
  return { data: result.data, error: result.error, isLate };
}

function hasResult(events: Schemas["AuditEventShown"][] | undefined): boolean {
  return events?.some(({ action }) => TEST_MAIL_RESULTS.includes(action)) === true;
}
