import { api, dataOf } from "../api/client";
import { ApiError } from "../api/errors";
import { useSyncModels } from "../models/api";
import { toast } from "../parts/toasts";
import { useSetCredentials } from "../providers/api";
import { CredentialsForm } from "../providers/CredentialsForm";
import { texts } from "../texts";

/** Sets up a provider, checks it at once, and adds its models to the catalog. */
export function AddProvider({ onDone }: { onDone: () => void }) {
  const setCredentials = useSetCredentials();
  const sync = useSyncModels();
  return (
    <CredentialsForm
      onCancel={onDone}
      onSubmit={async (id, credentials) => {
        await setCredentials.mutateAsync({ id, credentials });
        const health = await dataOf(api.POST("/api/admin/providers/{provider_id}/health-check", { params: { path: { provider_id: id } } }));
        if (health.health_check_status !== "healthy") {
          throw new ApiError(200, health.error ?? texts.overview.healthOf(health.health_check_status));
        }
        const result = await sync.mutateAsync(undefined);
        toast(texts.models.synced(Array.isArray(result) ? result.length : result.added));
        onDone();
      }}
    />
  );
}
