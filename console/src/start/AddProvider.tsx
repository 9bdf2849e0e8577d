import { useMemo, useState } from "react";
import { api, dataOf } from "../api/client";
import { ApiError } from "../api/errors";
import { MUST_BE_NEW } from "../api/versions";
import { useSyncModels } from "../models/api";
import { Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { useProviders, useSetCredentials } from "../providers/api";
import { CredentialsForm } from "../providers/CredentialsForm";
import { texts } from "../texts";
import { modelTexts } from "../texts/models";

/** Sets up a provider, checks it at once, and adds its models to the catalog. */
export function AddProvider({ onDone }: { onDone: () => void }) {
  const setCredentials = useSetCredentials();
  const sync = useSyncModels();
  const providers = useProviders();
  // The provider that this dialog has added. If its check fails, the next attempt replaces its credentials.
  const [addedId, setAddedId] = useState<string>();
  const taken = useMemo(() => new Set(providers.data?.map(({ id }) => id).filter((id) => id !== addedId)), [providers.data, addedId]);
  if (providers.isPending) return <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>;
  return (
    <CredentialsForm
      taken={taken} onCancel={onDone}
      onSubmit={async (id, credentials) => {
        await setCredentials.mutateAsync({ id, credentials, header: id === addedId ? { "If-Match": "*" } : MUST_BE_NEW });
        setAddedId(id);
        const health = await dataOf(api.POST("/api/admin/providers/{provider_id}/health-check", { params: { path: { provider_id: id } } }));
        if (health.health_check_status !== "healthy") {
          throw new ApiError(200, health.error ?? texts.overview.healthOf(health.health_check_status));
        }
        const result = await sync.mutateAsync(undefined);
        toast(modelTexts.synced(Array.isArray(result) ? result.length : result.added));
        onDone();
      }}
    />
  );
}
